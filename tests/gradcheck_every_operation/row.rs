//! A row of the tables: an operation, its operands, and the call.

use wengert::autograd::gradcheck::{Failure, Report};
use wengert::autograd::{Error, GradCheck};
use wengert::prelude::*;

use super::grid::{Approximate, Distinct, Domain, Fixed, Form, Integers, Single, forms, pairs, tensor};

pub type V<'t> = Var<'t, f64>;

/// An operation and the operands on which it is checked.
pub struct Row {
    /// The name of the operation.
    pub name: &'static str,
    /// A name that distinguishes this row from other rows of the operation. It may be empty in one of them.
    pub case: &'static str,
    /// The call, as written in the table.
    pub call: &'static str,
    pub operands: Operands,
    pub f: for<'t> fn(&[V<'t>]) -> V<'t>,
}

/// The operands on which an operation is checked.
#[derive(Clone, Copy)]
pub enum Operands {
    /// One operand, in every form.
    One(Domain),
    /// Two operands, in every pair of forms. If the flag is true, one operand is also used as both. The flag is false if that would be at a
    /// kink or outside of the domain.
    Two(Domain, Domain, bool),
    /// One operand that the operation changes, in every form that may be written to.
    OneInPlace(Domain),
    /// Two operands, in every pair of forms where the second broadcasts to the first. The operation changes the first.
    TwoInPlace(Domain, Domain),
    /// Operands of these shapes.
    Of(Domain, &'static [&'static [usize]]),
}

/// Makes the rows of operations on one operand of any shape: `name "case": domain => |x| call;`.
macro_rules! one {
    ($($name:ident $($case:literal)?: $domain:expr => |$x:ident| $f:expr;)*) => {
        &[$($crate::gradcheck_every_operation::row::row!($name [$($case)?] One($domain) => |$x| $f)),*]
    };
}

/// Makes the rows of operations on two operands that broadcast: `name "case": domain, domain, with itself => |x, y| call;`.
macro_rules! two {
    ($($name:ident $($case:literal)?: $first:expr, $second:expr, $itself:expr => |$x:ident, $y:ident| $f:expr;)*) => {
        &[$($crate::gradcheck_every_operation::row::row!($name [$($case)?] Two($first, $second, $itself) => |$x, $y| $f)),*]
    };
}

/// Makes the rows of operations that change their first operand: `name "case": domain => |x| call;`, or with two domains `|x, y|`.
macro_rules! in_place {
    (@operands $first:expr) => { $crate::gradcheck_every_operation::row::Operands::OneInPlace($first) };
    (@operands $first:expr, $second:expr) => { $crate::gradcheck_every_operation::row::Operands::TwoInPlace($first, $second) };
    ($($name:ident $($case:literal)?: $($domain:expr),+ => |$x:ident $(, $y:ident)?| $f:expr;)*) => {
        &[$($crate::gradcheck_every_operation::row::Row {
            name: stringify!($name),
            case: concat!($($case)?),
            call: stringify!($f),
            operands: $crate::gradcheck_every_operation::row::in_place!(@operands $($domain),+),
            f: |operands| {
                let &[$x $(, $y)?] = operands else { unreachable!() };
                let mut $x = $x;
                $f;
                $x
            },
        }),*]
    };
}

/// Makes the rows of operations on operands of certain shapes: `name "case": domain [size, …] [size, …] => |x, y| call;`.
macro_rules! of {
    ($($name:ident $($case:literal)?: $domain:ident $([$($size:expr),*])+ => |$($x:ident),+| $f:expr;)*) => {
        &[$($crate::gradcheck_every_operation::row::row!($name [$($case)?] Of($domain, &[$(&[$($size),*]),+]) => |$($x),+| $f)),*]
    };
}

macro_rules! row {
    ($name:ident [$($case:literal)?] $kind:ident($($operands:tt)*) => |$($x:ident),+| $f:expr) => {
        $crate::gradcheck_every_operation::row::Row {
            name: stringify!($name),
            case: concat!($($case)?),
            call: stringify!($f),
            operands: $crate::gradcheck_every_operation::row::Operands::$kind($($operands)*),
            f: |operands| {
                let &[$($x),+] = operands else { unreachable!() };
                $f
            },
        }
    };
}

pub(crate) use {in_place, of, one, row, two};

impl Row {
    /// Checks reverse and forward mode on all operands, for order 1, and for order 2 unless the domain excludes it.
    pub fn check(&self) {
        let title = if self.case.is_empty() { self.name.to_owned() } else { format!("{}, {}", self.name, self.case) };
        match self.operands {
            Operands::One(domain) => one_operand(&title, domain, |x| (self.f)(&[x])),
            Operands::Two(first, second, itself) => {
                two_operands(&title, first, second, itself, |x, y| (self.f)(&[x, y]))
            }
            Operands::OneInPlace(domain) => {
                for form in forms().filter(|form| !form.is_expanded()) {
                    self.passes(&title, &[(form, domain)], on_the_grid(domain));
                }
            }
            Operands::TwoInPlace(first, second) => {
                let fits = |&(left, right): &(Form, Form)| {
                    let joined = wengert::tensor::ops::broadcast_shapes([left.shape(), right.shape()]);
                    joined == left.shape() && !left.is_expanded()
                };
                for (left, right) in pairs().filter(fits) {
                    let Fixed(_) = first else {
                        self.passes(&title, &[(left, first), (right, second)], on_the_grid(first));
                        continue;
                    };
                    let (x, y) = (tensor(left, first, 0.0), tensor(right, second, 0.37));
                    // The error names the operation without the `_` at the end of its in-place form.
                    let name = self.name.trim_end_matches('_');
                    has_no_derivative(name, &x, |x| (self.f)(&[x * 1.0, x.tape().constant(&y)]));
                    let what = format!("{title} of {left:?} and {right:?}");
                    passes(&what, on_the_grid(second).check(|[y]| (self.f)(&[y.tape().constant(&x), y]), [&y]));
                }
            }
            Operands::Of(domain, shapes) => {
                let operands: Vec<_> = shapes.iter().map(|&shape| (Form::Plain(shape), domain)).collect();
                self.passes(&title, &operands, claiming(GradCheck::new(), domain));
            }
        }
    }

    fn passes(&self, title: &str, operands: &[(Form, Domain)], check: GradCheck) {
        let inputs: Vec<Tensor<f64>> =
            operands.iter().enumerate().map(|(k, &(form, domain))| tensor(form, domain, 0.37 * k as f64)).collect();
        let inputs: Vec<&Tensor<f64>> = inputs.iter().collect();
        let forms: Vec<Form> = operands.iter().map(|&(form, _)| form).collect();
        passes(&format!("{title} of {forms:?}"), check.check_slice(self.f, &inputs));
    }
}

/// Returns the check for the grid. If there are more than four elements, it checks one randomly weighted sum of them.
/// An error in one element changes this sum.
fn on_the_grid(domain: Domain) -> GradCheck {
    claiming(GradCheck::new().full_up_to(4).projections(1), domain)
}

/// Limits the accuracy that a check demands to the digits that the operation has, and the order to the derivatives that it has.
fn claiming(check: GradCheck, domain: Domain) -> GradCheck {
    match domain {
        Approximate(_) => check.accuracy(1e-9),
        Single(_) => check.accuracy(f64::from(f32::EPSILON)).order(1),
        _ => check,
    }
}

fn passes(what: &str, result: Result<Report, Failure>) {
    if let Err(failure) = result {
        panic!("{what}: {failure}");
    }
}

pub fn one_operand(name: &str, domain: Domain, f: impl for<'t> Fn(V<'t>) -> V<'t>) {
    // The elements of an expanded tensor are equal, which this domain does not allow.
    let is_possible = |form: &Form| !(matches!(domain, Distinct(_)) && form.is_expanded());
    for form in forms().filter(is_possible) {
        let x = tensor(form, domain, 0.0);
        passes(&format!("{name} of {form:?}"), on_the_grid(domain).check(|[x]| f(x), [&x]));
    }
}

pub fn two_operands(
    name: &str,
    first: Domain,
    second: Domain,
    itself: bool,
    f: impl for<'t> Fn(V<'t>, V<'t>) -> V<'t>,
) {
    for (left, right) in pairs() {
        let (x, y) = (tensor(left, first, 0.0), tensor(right, second, 0.37));
        let what = format!("{name} of {left:?} and {right:?}");
        if let Fixed(_) = first {
            has_no_derivative(name, &x, |x| f(x, x.tape().constant(&y)));
            passes(&what, on_the_grid(second).check(|[y]| f(y.tape().constant(&x), y), [&y]));
        } else {
            passes(&what, on_the_grid(first).check(|[x, y]| f(x, y), [&x, &y]));
        }
    }
    if itself {
        one_operand(&format!("{name} with itself"), first, |x| f(x, x));
    }
}

/// Checks that a gradient through an operation is refused, and that the error names the operation.
pub fn has_no_derivative(name: &str, x: &Tensor<f64>, f: impl for<'t> Fn(V<'t>) -> V<'t>) {
    let tape = Tape::new();
    let x = tape.var(x);
    let error = f(x).sum(..).try_grad([x]).unwrap_err();
    assert!(matches!(error, Error::NotDifferentiable { operation, .. } if operation == name), "{name}: {error}");
}

/// Checks that an operation returns an error for floating-point operands.
pub fn is_refused(name: &str, result: Result<V<'_>, Error>) {
    let value = result.and_then(|result| result.try_value());
    assert!(value.is_err(), "{name} has a value");
}

/// Returns true if the operation refuses floating-point numbers.
pub fn is_for_integers(domain: Domain) -> bool {
    matches!(domain, Integers)
}
