//! Tests that `vmap` of every operation equals a loop over the examples.
//!
//! The tests compare values, derivatives in both modes, and derivatives that are taken inside `vmap` and differentiated once
//! more. They cover the choices of operands that differ between examples, with the examples along different dimensions. The
//! operations and the operands come from `gradcheck_every_operation`.
//!
//! Another test checks that `vmap` is not a loop. The number of recorded nodes must not grow with the number of examples. The operations in
//! [`LOOPS`] are exceptions.

use std::cell::Cell;
use std::collections::BTreeSet;

use wengert::autograd::transforms::Vmap;
use wengert::prelude::*;
use wengert::tensor::ops::{TensorLike, broadcast_shapes, broadcast_tensors};
use wengert::tensor::{Binary, Site, Unary};

use crate::gradcheck_every_operation::TABLES;
use crate::gradcheck_every_operation::elementwise::{domain_of_binary, domain_of_unary};
use crate::gradcheck_every_operation::grid::{Distinct, Domain, Form, Plain, forms, pairs, tensor};
use crate::gradcheck_every_operation::row::{Operands, Row, V, is_for_integers};

/// The operations that read values while they are recorded. If a function contains one of them, `vmap` calls the
/// function for each example.
const LOOPS: &[&str] = &[
    "cummax",
    "cummin",
    "frexp",
    "grid_sample",
    "igamma",
    "igamma_",
    "igammac",
    "igammac_",
    "kthvalue",
    "max",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "median",
    "median_all",
    "min",
    "mode",
    "nanmedian",
    "nanmedian_all",
    "nanquantile",
    "quantile",
    "sort",
    "topk",
];

/// The function that is batched: a function of an operation's operands.
type Call<'f> = &'f dyn for<'t> Fn(&[V<'t>]) -> V<'t>;

/// The operands of one check: the form and the domain of each.
type Given = Vec<(Form, Domain)>;

/// The way in which a function is applied to all examples.
#[derive(Clone, Copy, Debug)]
enum How {
    Vmap,
    Loop,
}

impl How {
    /// Returns the results of `f` for `size` examples, with the examples along the first dimension of each result.
    fn apply<'t>(
        self,
        f: &dyn Fn(&[V<'t>]) -> Vec<V<'t>>,
        inputs: &[V<'t>],
        in_dims: &[Option<isize>],
        size: usize,
    ) -> Vec<V<'t>> {
        match self {
            How::Vmap => Vmap::new().in_dims(in_dims.iter().copied()).record_slice(f, inputs),
            How::Loop => {
                let example = |number: usize| {
                    let slice = |(input, dim): (&V<'t>, &Option<isize>)| match dim {
                        Some(dim) => input.select(*dim, number),
                        None => *input,
                    };
                    f(&inputs.iter().zip(in_dims).map(slice).collect::<Vec<_>>())
                };
                let examples: Vec<Vec<V<'t>>> = (0..size).map(example).collect();
                let results = 0..examples[0].len();
                results.map(|k| stack(&examples.iter().map(|results| results[k]).collect::<Vec<_>>(), 0)).collect()
            }
        }
    }

    /// Returns all values to compare: the values of `f`, its derivatives, the derivatives taken inside, and their derivatives.
    fn outcome(self, f: Call, inputs: &[Tensor<f64>], in_dims: &[Option<isize>], size: usize) -> Outcome {
        let tape = Tape::new();
        let refused = Cell::new(0);
        let vars: Vec<V> = inputs.iter().map(|input| tape.var(input)).collect();
        let result = self.apply(&|x| vec![f(x)], &vars, in_dims, size)[0];
        let mut all = vec![result, directional(&[result], &vars, &refused)];
        let w = numbers(result, 0.2);
        all.extend(gradients(&[(result, w)], &vars, &refused));
        // For the derivatives taken inside, the incoming gradients are an additional input.
        let (vars, dims) = ([&vars[..], &[w]].concat(), [in_dims, &[Some(0)]].concat());
        let inner = |x: &[V<'_>]| x.len() - 1;
        let inside = self.apply(
            &|x| gradients(&[(f(&x[..inner(x)]), x[inner(x)])], &x[..inner(x)], &refused),
            &vars,
            &dims,
            size,
        );
        let seeds: Vec<(V, V)> = inside.iter().map(|&g| (g, numbers(g, 0.4))).collect();
        all.extend(gradients(&seeds, &vars, &refused));
        all.push(directional(&inside, &vars, &refused));
        all.extend(inside);
        let forward =
            self.apply(&|x| vec![directional(&[f(&x[..inner(x)])], &x[..inner(x)], &refused)], &vars, &dims, size);
        all.extend(forward);
        Outcome { values: tape.values_slice(&all), refused: refused.get() > 0 }
    }
}

/// The values that are compared, of `vmap` or of the loop.
struct Outcome {
    values: Vec<Tensor<f64>>,
    /// True if a derivative does not exist, which is an error.
    refused: bool,
}

/// Returns the gradients of the results with their seeds. A gradient is zeros if the results do not depend on the
/// input. All gradients are zeros if a derivative does not exist.
fn gradients<'t>(results: &[(V<'t>, V<'t>)], inputs: &[V<'t>], refused: &Cell<usize>) -> Vec<V<'t>> {
    let gradients = inputs[0].tape().try_vjp(results, inputs).unwrap_or_else(|_| {
        refused.set(refused.get() + 1);
        vec![None; inputs.len()]
    });
    let zeros = |x: &V<'t>| x.tape().constant(Tensor::zeros(x.shape()));
    gradients.into_iter().zip(inputs).map(|(g, x)| g.unwrap_or_else(|| zeros(x))).collect()
}

/// Returns the directional derivatives of the results, as one vector if there are several results. If a derivative does not exist, uses the
/// results themselves.
fn directional<'t>(results: &[V<'t>], inputs: &[V<'t>], refused: &Cell<usize>) -> V<'t> {
    let tangents: Vec<(V, V)> = inputs.iter().map(|&x| (x, numbers(x, 0.6))).collect();
    let derivatives = inputs[0].tape().try_jvp(results, &tangents).unwrap_or_else(|_| {
        refused.set(refused.get() + 1);
        results.to_vec()
    });
    let flat: Vec<V> = derivatives.iter().map(|derivative| derivative.flatten(0, -1)).collect();
    let all = cat(&flat, 0);
    if results.len() == 1 { all.reshape(derivatives[0].shape()) } else { all }
}

/// Returns distinct values in the shape of `x`.
fn numbers<'t>(x: V<'t>, phase: f64) -> V<'t> {
    let mut k = 0.0;
    x.tape().constant(Tensor::from_fn(x.shape(), |_| {
        k += 1.0;
        // Multiples of the golden ratio modulo 1 are evenly distributed.
        2.0 * (phase + k * 0.618_033_988_749_895_f64).fract() - 1.0
    }))
}

/// Returns true if two tensors are equal up to the rounding of sums in another order.
fn equal(got: &Tensor<f64>, want: &Tensor<f64>) -> bool {
    let largest = want.iter().filter(|x| x.is_finite()).fold(1.0, |largest: f64, x| largest.max(x.abs()));
    let close = |(x, y): (f64, f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-12 * largest;
    got.shape() == want.shape() && got.iter().zip(want.iter()).all(close)
}

/// Checks an operation with three examples. If there is a single list of operands, checks every choice of operands that differ between
/// examples. If there are several lists, checks each list with one choice. The choices alternate from list to list.
fn check(title: &str, f: Call, all: &[Given]) {
    let choices = |operands: &Given| (1..1usize << operands.len()).collect::<Vec<_>>();
    let one = |(turn, operands)| {
        let choices = choices(operands);
        (turn, operands, choices[turn % choices.len()])
    };
    let checks: Vec<(usize, &Given, usize)> = match all {
        [operands] => {
            choices(operands).into_iter().enumerate().map(|(turn, choice)| (turn, operands, choice)).collect()
        }
        _ => all.iter().enumerate().map(one).collect(),
    };
    for (turn, operands, choice) in checks {
        let (inputs, in_dims) = inputs(operands, 3, |k| choice >> k & 1 == 1, turn);
        let [got, want] = [How::Vmap, How::Loop].map(|how| how.outcome(f, &inputs, &in_dims, 3));
        let what = format!("{title} of {operands:?}, in_dims {in_dims:?}");
        assert_eq!(got.refused, want.refused, "{what}: only one of them refuses a derivative");
        for (number, (got, want)) in got.values.iter().zip(&want.values).enumerate() {
            assert!(equal(got, want), "{what}: value {number} is\n{got}\nbut a loop gives\n{want}");
        }
        assert_eq!(got.values.len(), want.values.len(), "{what}");
    }
}

/// Returns operands for `size` examples, and the dimension of the examples in each. Each operand that `differs` selects has this dimension
/// at a place that depends on `turn`.
fn inputs(
    operands: &Given,
    size: usize,
    differs: impl Fn(usize) -> bool,
    turn: usize,
) -> (Vec<Tensor<f64>>, Vec<Option<isize>>) {
    let operand = |(k, &(form, domain)): (usize, &(Form, Domain))| {
        let example = |number: usize| tensor(form, domain, 0.37 * k as f64 + 0.11 * number as f64);
        if !differs(k) {
            return (example(0), None);
        }
        let rank = form.shape().rank() as isize;
        let dim = (turn + k) as isize % (2 * rank + 2) - rank - 1;
        let examples: Vec<Tensor<f64>> = (0..size).map(example).collect();
        (stack(&examples, dim), Some(dim))
    };
    operands.iter().enumerate().map(operand).unzip()
}

/// Returns the operands of all checks of a row.
fn operands(row: &Row) -> Vec<Given> {
    let alone = |domain: Domain, form: Form| vec![(form, domain)];
    match row.operands {
        Operands::One(domain) => of_one(domain),
        Operands::Two(first, second, _) => of_two(first, second),
        Operands::OneInPlace(domain) => {
            forms().filter(|form| !form.is_expanded()).map(|form| alone(domain, form)).collect()
        }
        Operands::TwoInPlace(first, second) => pairs()
            .filter(|(left, right)| {
                broadcast_shapes([left.shape(), right.shape()]) == left.shape() && !left.is_expanded()
            })
            .map(|(left, right)| vec![(left, first), (right, second)])
            .collect(),
        Operands::Of(domain, shapes) => vec![shapes.iter().map(|&shape| (Plain(shape), domain)).collect()],
    }
}

/// Returns the operands of checks with one operand: one check for each form.
fn of_one(domain: Domain) -> Vec<Given> {
    // The elements of an expanded tensor are equal, which this domain does not allow.
    let is_possible = |form: &Form| !(matches!(domain, Distinct(_)) && form.is_expanded());
    forms().filter(is_possible).map(|form| vec![(form, domain)]).collect()
}

/// Returns the operands of checks with two operands: one check for each pair of forms that broadcasts.
fn of_two(first: Domain, second: Domain) -> Vec<Given> {
    pairs().map(|(left, right)| vec![(left, first), (right, second)]).collect()
}

/// Checks every fourth table, beginning with the table `quarter`. The four quarters are four tests, so that they run on four threads.
fn tables(quarter: usize) {
    for row in TABLES.iter().skip(quarter).step_by(4).copied().flatten() {
        check(&format!("{} {}", row.name, row.case), &|x| (row.f)(x), &operands(row));
    }
}

#[test]
fn operations_of_the_first_tables() {
    tables(0);
}

#[test]
fn operations_of_the_second_tables() {
    tables(1);
}

#[test]
fn operations_of_the_third_tables() {
    tables(2);
}

#[test]
fn operations_of_the_fourth_tables() {
    tables(3);
}

#[test]
fn primitives() {
    let at = Site::here("test");
    for &op in Unary::ALL {
        let domain = domain_of_unary(op);
        if !is_for_integers(domain) {
            check(op.name(), &|x| x[0].apply_unary(op, at).unwrap(), &of_one(domain));
        }
    }
    for &op in Binary::ALL {
        let (first, second, _) = domain_of_binary(op);
        if !is_for_integers(first) {
            check(op.name(), &|x| binary(op, x), &of_two(first, second));
        }
    }
}

/// Applies `op` to two operands that broadcast.
fn binary<'t>(op: Binary, x: &[V<'t>]) -> V<'t> {
    let both = broadcast_tensors(x);
    both[0].apply_binary(op, &both[1], Site::here("test")).unwrap()
}

/// Checks operations that have no derivative. They have no row in the tables.
#[test]
fn operations_without_a_derivative() {
    let given = vec![(Plain(&[3, 4]), domain_of_binary(Binary::FloorDivide).0)];
    check("detach", &|x| x[0].detach() * x[0], std::slice::from_ref(&given));
    check("floor_divide", &|x| x[0].floor_divide(0.7), std::slice::from_ref(&given));
    check("heaviside", &|x| x[0].heaviside(x[0].exp()), &[given]);
}

/// Checks batches of one example and of no example.
#[test]
fn few_examples() {
    for row in TABLES.iter().copied().flatten() {
        let given = &operands(row)[0];
        let result = |size: usize| {
            let (tape, (inputs, in_dims)) = (Tape::new(), inputs(given, size.max(1), |_| true, 0));
            let vars: Vec<V> =
                inputs.iter().zip(&in_dims).map(|(x, dim)| tape.var(&x.narrow(dim.unwrap(), 0, size))).collect();
            How::Vmap.apply(&|x| vec![(row.f)(x)], &vars, &in_dims, size)[0].value()
        };
        let (one, tape) = (result(1), Tape::new());
        let example: Vec<V> = given
            .iter()
            .enumerate()
            .map(|(k, &(form, domain))| tape.var(&tensor(form, domain, 0.37 * k as f64)))
            .collect();
        assert!(equal(&one.squeeze(0), &(row.f)(&example).value()), "{} {}", row.name, row.case);
        let none: Vec<usize> = [0].into_iter().chain(one.shape()[1..].iter().copied()).collect();
        assert_eq!(result(0).shape(), &none[..], "{} {}", row.name, row.case);
    }
}

/// Checks that the number of nodes does not depend on the number of examples, unless the operation reads values.
#[test]
fn the_list_of_loops_is_exact() {
    let mut loops = BTreeSet::new();
    for row in TABLES.iter().copied().flatten() {
        let given = operands(row).pop().unwrap();
        let nodes = |size: usize| {
            let (tape, (inputs, in_dims)) = (Tape::new(), inputs(&given, size, |_| true, 0));
            let vars: Vec<V> = inputs.iter().map(|input| tape.var(input)).collect();
            How::Vmap.apply(&|x| vec![(row.f)(x)], &vars, &in_dims, size);
            tape.len()
        };
        if nodes(2) != nodes(5) {
            loops.insert(row.name);
        }
    }
    assert_eq!(loops, LOOPS.iter().copied().collect());
}
