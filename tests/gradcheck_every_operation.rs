//! Every operation's derivatives agree with central differences: reverse and forward mode, orders 1 and 2, over a grid of
//! shapes that broadcast, with transposed, expanded and empty operands and one operand in both places.
//!
//! The primitives come from `Unary::ALL` and `Binary::ALL`: a new one fails here until it has a domain. Operations made of
//! others are a line each in [`ONE`], [`TWO`] and [`SHAPED`].

use wengert::autograd::gradcheck::{Failure, Report};
use wengert::autograd::{Error, GradCheck, gradcheck};
use wengert::prelude::*;
use wengert::tensor::ops::broadcast_tensors;
use wengert::tensor::{Binary, Site, Unary};

type V<'t> = Var<'t, f64>;

/// Where an operation is checked.
#[derive(Clone, Copy, Debug)]
enum Domain {
    /// Smooth in these intervals.
    Smooth(&'static [(f64, f64)]),
    /// The same, but for elements that are equal: there is a kink where two of them meet.
    Distinct(&'static [(f64, f64)]),
    /// The same; the values are exact to nine digits only.
    Approximate(&'static [(f64, f64)]),
    /// The same; as PyTorch's, its derivative is exact to single precision only, and has no derivative of its own.
    Single(&'static [(f64, f64)]),
    /// In these intervals it has no derivative with respect to this operand, and says so.
    Fixed(&'static [(f64, f64)]),
    /// It has no meaning on floating-point numbers, and says so.
    Integers,
}

use Domain::{Approximate, Distinct, Fixed, Integers, Single, Smooth};

/// Anywhere but near 0.
const REAL: Domain = Smooth(&[(0.15, 1.6), (-1.7, -0.2)]);
const POSITIVE: Domain = Smooth(&[(0.3, 2.5)]);
const BETWEEN_ONES: Domain = Smooth(&[(0.1, 0.85), (-0.8, -0.15)]);
const BETWEEN_INTEGERS: Domain = Smooth(&[(0.1, 0.4), (-1.9, -1.6), (2.6, 2.9), (-0.4, -0.1)]);

fn domain_of_unary(op: Unary) -> Domain {
    match op {
        Unary::Neg | Unary::Abs | Unary::Sign | Unary::Reciprocal | Unary::Square => REAL,
        Unary::Exp | Unary::Exp2 | Unary::Expm1 | Unary::Sin | Unary::Cos | Unary::Atan => REAL,
        Unary::Sinh | Unary::Cosh | Unary::Tanh | Unary::Asinh | Unary::Sigmoid | Unary::Relu => REAL,
        Unary::Erf | Unary::Erfc => REAL,
        Unary::Sqrt | Unary::SqrtFlat | Unary::Log | Unary::Log2 | Unary::Log10 => POSITIVE,
        // The trigamma function has as few terms as PyTorch's.
        Unary::Lgamma | Unary::Digamma | Unary::Trigamma => Approximate(&[(0.5, 4.0), (-1.8, -1.2)]),
        Unary::Log1p => Smooth(&[(0.1, 2.0), (-0.7, -0.1)]),
        Unary::Tan => Smooth(&[(-1.1, -0.2), (0.2, 1.1), (2.1, 4.0)]),
        Unary::Asin | Unary::Acos | Unary::Atanh | Unary::Erfinv => BETWEEN_ONES,
        Unary::Acosh => Smooth(&[(1.3, 4.0)]),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => BETWEEN_INTEGERS,
        Unary::Sinc => REAL,
        Unary::Logit => Smooth(&[(0.1, 0.9)]),
        Unary::Hardsigmoid => Single(&[(-2.5, 2.5), (3.5, 4.0), (-4.0, -3.5)]),
        Unary::Not => Integers,
        new => panic!("{} needs a domain", new.name()),
    }
}

/// The domains of both operands, and whether the same operand may stand in both places.
fn domain_of_binary(op: Binary) -> (Domain, Domain, bool) {
    const QUOTIENT: Domain = Smooth(&[(2.3, 2.6), (-2.6, -2.3)]);
    const NEAR_ONE: Domain = Smooth(&[(0.95, 1.05)]);
    match op {
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => (REAL, REAL, true),
        // max(x, x) = x is smooth, though each half of it is not.
        Binary::Maximum | Binary::Minimum | Binary::Fmax | Binary::Fmin => (REAL, REAL, true),
        Binary::Atan2 | Binary::Hypot | Binary::Copysign => (REAL, REAL, true),
        Binary::Pow => (POSITIVE, REAL, false),
        // The quotient lies between 2.1 and 2.8, or their opposites; that of x with itself is at a jump.
        Binary::Fmod | Binary::Remainder | Binary::FloorDivide => (QUOTIENT, NEAR_ONE, false),
        // The number next to x is x by convention, whose derivative is 0: a point off the line.
        Binary::Nextafter => (REAL, REAL, false),
        Binary::Prelu => (REAL, REAL, true),
        Binary::LogitWithin => (Smooth(&[(0.2, 0.8)]), Smooth(&[(0.01, 0.1)]), false),
        Binary::Xlogy | Binary::Xlog1py => (REAL, POSITIVE, false),
        Binary::Zeta => (Fixed(&[(1.5, 4.0)]), POSITIVE, false),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight => (Integers, Integers, false),
        Binary::Gcd | Binary::Lcm => (Integers, Integers, false),
        new => panic!("{} needs a domain", new.name()),
    }
}

/// A tensor's shape, and how it lies in memory.
#[derive(Clone, Copy, Debug)]
enum Form {
    Plain(&'static [usize]),
    /// This shape, as the transpose of another tensor.
    Transposed(usize, usize),
    /// The first shape expanded to the second.
    Expanded(&'static [usize], &'static [usize]),
}

use Form::{Expanded, Plain, Transposed};

const FORMS: &[Form] = &[
    Plain(&[]),
    Plain(&[4]),
    Plain(&[2, 3]),
    Plain(&[1, 2, 1]),
    Plain(&[0]),
    Plain(&[2, 0]),
    Transposed(3, 2),
    Expanded(&[3], &[2, 3]),
];

const PAIRS: &[(Form, Form)] = &[
    (Plain(&[]), Plain(&[])),
    (Plain(&[4]), Plain(&[])),
    (Plain(&[4]), Plain(&[4])),
    (Plain(&[3, 4]), Plain(&[4])),
    (Plain(&[3, 4]), Plain(&[1, 4])),
    (Plain(&[3, 1]), Plain(&[1, 4])),
    (Plain(&[3]), Plain(&[2, 1, 1])),
    (Plain(&[2, 1, 3]), Plain(&[2, 1])),
    (Plain(&[1]), Plain(&[0])),
    (Plain(&[2, 0]), Plain(&[2, 1])),
    (Transposed(3, 2), Plain(&[2])),
    (Transposed(2, 3), Transposed(2, 3)),
    (Expanded(&[3], &[2, 3]), Plain(&[2, 1])),
    (Expanded(&[], &[3]), Expanded(&[2, 1], &[2, 3])),
];

/// Numbers of the domain, no two of them near each other; those of different operands (`phase`) neither.
fn tensor(form: Form, domain: Domain, phase: f64) -> Tensor<f64> {
    let (Smooth(intervals) | Distinct(intervals) | Approximate(intervals) | Single(intervals) | Fixed(intervals)) =
        domain
    else {
        panic!("{domain:?} has no points");
    };
    let mut k = 0;
    let mut next = || {
        k += 1;
        // Multiples of the golden ratio, modulo 1: evenly spread, never equal.
        let share = (0.5 + phase + f64::from(k) * 0.618_033_988_749_895).fract();
        let (low, high) = intervals[k as usize % intervals.len()];
        low + (high - low) * share
    };
    match form {
        Plain(shape) => Tensor::from_fn(shape, |_| next()),
        Transposed(rows, columns) => Tensor::from_fn([columns, rows], |_| next()).t(),
        Expanded(from, to) => Tensor::from_fn(from, |_| next()).expand(to),
    }
}

fn passes(what: &str, result: Result<Report, Failure>) {
    if let Err(failure) = result {
        panic!("{what}: {failure}");
    }
}

fn one(name: &str, domain: Domain, f: impl for<'t> Fn(V<'t>) -> V<'t>) {
    for &form in FORMS {
        // The elements of an expanded tensor are equal.
        if matches!((domain, form), (Distinct(_), Expanded(..))) {
            continue;
        }
        let x = tensor(form, domain, 0.0);
        let check = match domain {
            Approximate(_) => GradCheck::new().accuracy(1e-9),
            Single(_) => GradCheck::new().accuracy(f64::from(f32::EPSILON)).order(1),
            _ => GradCheck::new(),
        };
        passes(&format!("{name} of {form:?}"), check.check(|[x]| f(x), [&x]));
    }
}

fn two(name: &str, (first, second, itself): (Domain, Domain, bool), f: impl for<'t> Fn(V<'t>, V<'t>) -> V<'t>) {
    for &(left, right) in PAIRS {
        let (x, y) = (tensor(left, first, 0.0), tensor(right, second, 0.37));
        let what = format!("{name} of {left:?} and {right:?}");
        if let Fixed(_) = first {
            has_no_derivative(name, &x, |x| f(x, x.tape().constant(&y)).sum(.., false));
            passes(&what, gradcheck(|[y]| f(y.tape().constant(&x), y), [&y]));
        } else {
            passes(&what, gradcheck(|[x, y]| f(x, y), [&x, &y]));
        }
    }
    if itself {
        one(&format!("{name} with itself"), first, |x| f(x, x));
    }
}

fn has_no_derivative(name: &str, x: &Tensor<f64>, f: impl for<'t> Fn(V<'t>) -> V<'t>) {
    let tape = Tape::new();
    let x = tape.var(x);
    let error = f(x).try_grad(&[x]).unwrap_err();
    assert!(matches!(error, Error::NotDifferentiable { operation, .. } if operation == name), "{error}");
}

/// That neither a value nor a gradient can be had of an operation on floating-point numbers.
fn is_refused(name: &str, result: Result<V<'_>, Error>) {
    let value = result.and_then(|result| result.try_value());
    assert!(value.is_err(), "{name} has a value");
}

#[test]
fn every_function_of_one_operand() {
    let at = Site::here("test");
    for &op in Unary::ALL {
        let tape = Tape::new();
        match domain_of_unary(op) {
            Integers => is_refused(op.name(), tape.var(&Tensor::scalar(1.5)).apply_unary(op, at)),
            domain => one(op.name(), domain, |x| x.apply_unary(op, at).unwrap()),
        }
    }
}

#[test]
fn every_function_of_two_operands() {
    let at = Site::here("test");
    for &op in Binary::ALL {
        let tape = Tape::new();
        match domain_of_binary(op) {
            (Integers, ..) => {
                let (x, y) = (tape.var(&Tensor::scalar(1.5)), tape.var(&Tensor::scalar(2.5)));
                is_refused(op.name(), x.apply_binary(op, &y, at));
            }
            domains => two(op.name(), domains, |x, y| {
                let [x, y] = broadcast_tensors(&[x, y])[..] else { unreachable!() };
                x.apply_binary(op, &y, at).unwrap()
            }),
        }
    }
}

const UNEQUAL: Domain = Distinct(&[(-1.5, 1.5)]);

/// A name, where it is smooth, and the function.
type One = (&'static str, Domain, for<'t> fn(V<'t>) -> V<'t>);

/// Of one operand of any shape.
const ONE: &[One] = &[
    ("rsqrt", POSITIVE, |x| x.rsqrt()),
    ("number - x", REAL, |x| 2.0 - x),
    ("number / x", REAL, |x| 2.0 / x),
    ("x % number", BETWEEN_INTEGERS, |x| x % 0.7 + x.fmod(0.7)),
    ("x to a number", POSITIVE, |x| x.pow(2.5)),
    ("x to an integer", REAL, |x| x.pow(3.0)),
    ("number to x", REAL, |x| &Tensor::scalar(1.5).expand(x.shape()) * x.exp2()),
    ("sum of all", REAL, |x| x.sum(.., false)),
    ("sum, kept", REAL, |x| x.sum(-1, true) * x),
    ("mean", REAL, |x| if x.shape().contains(&0) { x } else { x.mean(0, false) }),
    ("prod", REAL, |x| x.prod(.., false)),
    ("prod along a dimension", REAL, |x| x.prod(-1, true) * x),
    ("amax", UNEQUAL, |x| if x.shape().contains(&0) { x } else { x.amax(.., false) }),
    ("amin, kept", UNEQUAL, |x| if x.shape().contains(&0) { x } else { x * x.amin(-1, true) }),
    ("softmax", REAL, |x| x.softmax(-1)),
    ("softmax along the first", REAL, |x| x.softmax(0)),
    ("log_softmax", REAL, |x| x.log_softmax(-1)),
    ("logsumexp", REAL, |x| if x.shape().contains(&0) { x } else { x.logsumexp(.., false) }),
    ("logsumexp, kept", REAL, |x| x - x.logsumexp(-1, true)),
    ("where, one side", REAL, |x| where_(&x.gt(0.0), &(x * x), 0.5)),
    ("where, on masks of masks", REAL, |x| {
        let inside = x.gt(-1.0).logical_and(x.lt(1.0));
        where_(&inside.logical_xor(x.gt(0.0)).logical_or(x.lt(-1.5)), &x.exp(), x * x)
    }),
    ("where, both sides", REAL, |x| where_(&x.gt(0.0), &(x * x), x.exp())),
    ("a mask times x", REAL, |x| x.lt(0.0) * x.exp()),
    ("flatten", REAL, |x| x.flatten(0, -1) * 2.0),
    ("reshape to a column", REAL, |x| (x * x).reshape([x.shape().numel(), 1])),
    ("unsqueeze", REAL, |x| x.unsqueeze(-1) * x.exp().unsqueeze(0).unsqueeze(-1)),
    ("squeeze", REAL, |x| x.exp().squeeze(..)),
    ("expand", REAL, |x| x.exp().unsqueeze(0).expand_as(&stack(&[x, x], 0))),
    ("stack", REAL, |x| stack(&[x, x.exp(), x * x], -1)),
    ("t of what has two dimensions", REAL, |x| if x.shape().rank() > 2 { x } else { x.exp().t() }),
    ("transpose", REAL, |x| x.exp().transpose(0, -1)),
    ("flip", REAL, |x| x * x.flip(..)),
    ("relu6", REAL, |x| (x * 5.0).relu6()),
    ("hardtanh", REAL, |x| x.hardtanh(-1.0, 0.8)),
    ("leaky_relu", REAL, |x| x.leaky_relu(0.1)),
    ("elu", REAL, |x| x.elu(1.3)),
    ("celu", REAL, |x| x.celu(1.3)),
    ("selu", REAL, |x| x.selu()),
    ("gelu", REAL, |x| x.gelu()),
    ("gelu_tanh", REAL, |x| x.gelu_tanh()),
    ("silu", REAL, |x| x.silu()),
    ("mish", REAL, |x| x.mish()),
    ("softplus", REAL, |x| x.softplus(1.5, 2.0)),
    ("softsign", REAL, |x| x.softsign()),
    ("tanhshrink", REAL, |x| x.tanhshrink()),
    ("hardshrink", REAL, |x| x.hardshrink(0.5)),
    ("softshrink", REAL, |x| x.softshrink(0.5)),
    ("threshold", REAL, |x| x.threshold(0.1, 20.0)),
    ("hardswish", REAL, |x| (x * 2.5).hardswish()),
    ("logsigmoid", REAL, |x| x.logsigmoid()),
    ("prelu, one weight", REAL, |x| x.prelu(&x.sum(.., false))),
    ("clamp", REAL, |x| x.clamp(-0.9, 0.7)),
    ("nan_to_num", REAL, |x| x.nan_to_num(0.0, None, None) * x),
    ("logit", Smooth(&[(0.1, 0.9)]), |x| x.logit(None)),
    ("sinc", REAL, |x| x.sinc()),
    ("frac", BETWEEN_INTEGERS, |x| x.frac() * x),
    ("round_to", BETWEEN_INTEGERS, |x| x.round_to(0) * x),
    ("deg2rad and rad2deg", REAL, |x| x.deg2rad() * x.rad2deg()),
    ("masked_fill", REAL, |x| x.exp().masked_fill(&x.gt(0.0), 0.5)),
    ("in place", REAL, |x| {
        let mut y = x.exp();
        y.mul_(x);
        y.add_(1.0);
        y.square_();
        y
    }),
    ("a chain", REAL, |x| ((x * 0.5).tanh() * x.sigmoid() + x.sin()).exp() / (x * x + 1.0)),
];

/// A name, where it is smooth, and the function.
type Two = (&'static str, (Domain, Domain, bool), for<'t> fn(V<'t>, V<'t>) -> V<'t>);

/// Of two operands of any shapes that broadcast.
const TWO: &[Two] = &[
    ("operators", (REAL, REAL, true), |x, y| (x + y) * (x - y) / (y * y + 1.0)),
    ("div_floor times x", (Smooth(&[(2.3, 2.6)]), Smooth(&[(0.95, 1.05)]), false), |x, y| x.div_floor(y) * x),
    ("div_trunc times y", (Smooth(&[(-2.6, -2.3)]), Smooth(&[(0.95, 1.05)]), false), |x, y| x.div_trunc(y) * y),
    ("where", (REAL, REAL, true), |x, y| where_(&y.gt(0.0), &(x * y), y.exp())),
    ("where on a mask of its own shape", (REAL, REAL, true), |x, y| where_(&x.gt(0.0), &y.exp(), y * y)),
    ("softmax of a sum", (REAL, REAL, true), |x, y| (x + y).softmax(0)),
    ("clamp_min, clamp_max", (REAL, REAL, true), |x, y| x.clamp_min(y) * x.clamp_max(y)),
    ("lerp by a number", (REAL, REAL, true), |x, y| x.lerp(&y, 0.3)),
    ("lerp by a variable", (REAL, REAL, true), |x, y| x.lerp(&x.sin(), y)),
    ("addcmul", (REAL, REAL, true), |x, y| x.addcmul(&y, &x, 0.5)),
    ("addcdiv", (REAL, REAL, true), |x, y| y.addcdiv(&x, &y, 0.5)),
    ("ldexp", (REAL, REAL, true), |x, y| x.ldexp(y)),
    ("logaddexp", (REAL, REAL, true), |x, y| x.logaddexp(y)),
    ("logaddexp2", (REAL, REAL, true), |x, y| x.logaddexp2(y)),
    ("xlogy", (REAL, POSITIVE, false), |x, y| x.xlogy(y)),
    ("xlog1py", (REAL, POSITIVE, false), |x, y| x.xlog1py(y)),
    ("a normal log-density", (REAL, POSITIVE, false), |x, s| (x / s).square() * -0.5 - s.log()),
];

/// Of operands of certain shapes.
#[allow(clippy::type_complexity)]
const SHAPED: &[(&str, &[&[usize]], for<'t> fn(&[V<'t>]) -> V<'t>)] = &[
    ("matmul, vectors", &[&[3], &[3]], |x| x[0].matmul(&x[1])),
    ("matmul, matrix and vector", &[&[2, 3], &[3]], |x| x[0].matmul(&x[1])),
    ("matmul, vector and matrix", &[&[3], &[3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul, matrices", &[&[2, 3], &[3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul, transposed", &[&[3, 2], &[2, 3]], |x| x[0].t().matmul(&x[1].t())),
    ("matmul, batch and matrix", &[&[2, 2, 3], &[3, 2]], |x| x[0].matmul(&x[1])),
    ("matmul, batches that broadcast", &[&[2, 1, 1, 2], &[3, 2, 1]], |x| x[0].matmul(&x[1])),
    ("matmul, nothing in between", &[&[2, 0], &[0, 3]], |x| x[0].matmul(&x[1])),
    ("matmul, no rows", &[&[0, 2], &[2, 3]], |x| x[0].matmul(&x[1])),
    ("matmul with itself", &[&[3, 3]], |x| x[0].matmul(&x[0]).matmul(&x[0])),
    ("a linear layer", &[&[2, 3], &[4, 3], &[4]], |x| (x[0].matmul(&x[1].t()) + x[2]).tanh()),
    ("attention", &[&[2, 3], &[2, 3], &[2, 2]], |x| x[0].matmul(&x[1].t()).softmax(-1).matmul(&x[2])),
    ("sum over two dimensions", &[&[2, 3, 2]], |x| x[0].square().sum([0, 2], false)),
    ("mean over two dimensions", &[&[2, 3, 2]], |x| x[0].square().mean([1, -1], true)),
    ("sum_to", &[&[2, 3, 2]], |x| x[0].square().sum_to([3, 1])),
    ("permute", &[&[2, 3, 1]], |x| x[0].exp().permute([2, 0, 1])),
    ("movedim", &[&[2, 3, 2]], |x| x[0].exp().movedim([0], [2])),
    ("narrow", &[&[4, 2]], |x| x[0].exp().narrow(0, 1, 2)),
    ("slice", &[&[5, 2]], |x| x[0].exp().slice(0, Some(-4), None, 2)),
    ("select", &[&[3, 2]], |x| x[0].exp().select(0, -1) * x[0].select(1, 0).sum(0, false)),
    ("diagonal", &[&[3, 4]], |x| x[0].exp().diagonal(1, 0, 1)),
    ("unfold, windows that overlap", &[&[5]], |x| x[0].exp().unfold(0, 3, 1)),
    ("unflatten", &[&[6]], |x| x[0].exp().unflatten(0, [2, -1])),
    ("index_select", &[&[3, 2]], |x| x[0].exp().index_select(0, &Tensor::from([2i64, 0, 2]))),
    ("gather", &[&[3, 2]], |x| x[0].exp().gather(0, &Tensor::from([[2i64, 0], [2, 1]]))),
    ("glu", &[&[4, 2]], |x| x[0].glu(0)),
    ("prelu, a weight per channel", &[&[2, 3], &[3]], |x| x[0].prelu(&x[1])),
    ("cat", &[&[1, 2], &[2, 2], &[0, 2]], |x| cat(&[x[0].exp(), x[1], x[0] * x[0], x[2]], 0)),
    ("prod with a zero", &[&[2], &[2]], |x| cat(&[x[0], x[1] * 0.0, x[0]], 0).prod(.., false) + x[1].prod(0, false)),
];

#[test]
fn operations_of_one_operand_made_of_others() {
    for &(name, domain, f) in ONE {
        one(name, domain, f);
    }
}

#[test]
fn operations_of_two_operands_made_of_others() {
    for &(name, domains, f) in TWO {
        two(name, domains, f);
    }
}

#[test]
fn operations_on_certain_shapes() {
    for &(name, shapes, f) in SHAPED {
        let inputs: Vec<Tensor<f64>> =
            shapes.iter().enumerate().map(|(k, shape)| tensor(Plain(shape), REAL, 0.37 * k as f64)).collect();
        let inputs: Vec<&Tensor<f64>> = inputs.iter().collect();
        passes(name, GradCheck::new().check_slice(f, &inputs));
    }
}
