//! The derivatives of every operation agree with central differences, in reverse and forward mode, for order 1, and for order 2 where it
//! exists. The inputs are a grid of shapes that broadcast, with transposed, expanded and empty operands. If possible, one operand is also
//! used as both operands.
//!
//! No operation can be forgotten. The primitives come from `Unary::ALL`, `Binary::ALL` and `Reduction::ALL`; a new elementwise
//! primitive fails here until it has a domain. The operations come from the sources; a new one fails here until it has a row in a
//! table, or an entry in [`WITHOUT`] with a reason.

mod documentation;
pub mod elementwise;
pub mod grid;
mod movement;
mod networks;
mod products;
mod reductions;
pub mod row;

use std::collections::BTreeSet;

use crate::sources;
use wengert::prelude::*;
use wengert::tensor::ops::{TensorLike, broadcast_tensors};
use wengert::tensor::{Binary, Reduction, Site, Unary};

use self::elementwise::{domain_of_binary, domain_of_unary};
use self::grid::{Fixed, NEAR_ONE, Plain, QUOTIENT, REAL, Single, UNEQUAL, tensor};
use self::row::{Operands, Row, has_no_derivative, is_for_integers, is_refused, one_operand, two_operands};

/// All tables of checked operations.
pub const TABLES: &[&[Row]] = &[
    elementwise::ONE,
    elementwise::TWO,
    elementwise::IN_PLACE,
    reductions::ANY,
    reductions::PAIRS,
    reductions::SHAPED,
    reductions::IN_PLACE,
    movement::ANY,
    movement::PAIRS,
    movement::SHAPED,
    movement::IN_PLACE,
    movement::BY_INDEX_IN_PLACE,
    products::SHAPED,
    networks::ANY,
    networks::PAIRS,
    networks::SHAPED,
];

/// The operations without a row, each with its reason.
const WITHOUT: &[(&str, &str)] = &[
    ("all", "gives truth values that are no variable"),
    ("allclose", "gives a truth value"),
    ("any", "gives truth values that are no variable"),
    ("argmax", "gives positions"),
    ("argmax_all", "gives positions"),
    ("argmin", "gives positions"),
    ("argmin_all", "gives positions"),
    ("argsort", "gives positions"),
    ("bincount", "of integers"),
    ("bucketize", "gives positions"),
    ("detach", "stops every gradient"),
    ("bitwise_and_", "for integers and truth values"),
    ("bitwise_left_shift_", "for integers"),
    ("bitwise_not_", "for integers and truth values"),
    ("bitwise_or_", "for integers and truth values"),
    ("bitwise_right_shift_", "for integers"),
    ("bitwise_xor_", "for integers and truth values"),
    ("broadcast_shapes", "about shapes"),
    ("count_nonzero", "gives a count"),
    ("floor_divide", "refuses derivatives, as PyTorch's; see below"),
    ("floor_divide_", "refuses derivatives, as PyTorch's; see below"),
    ("gcd_", "for integers"),
    ("heaviside", "refuses derivatives, as PyTorch's; see below"),
    ("heaviside_", "refuses derivatives, as PyTorch's; see below"),
    ("histc", "gives counts"),
    ("isin", "gives truth values that are no variable"),
    ("lcm_", "for integers"),
    ("nonzero", "gives positions"),
    ("one_hot", "of integers"),
    ("searchsorted", "gives positions"),
    ("unique", "gives plain data, as PyTorch's"),
    ("unique_consecutive", "gives plain data, as PyTorch's"),
    ("unique_dim", "gives plain data, as PyTorch's"),
    ("unravel_index", "of integers"),
    ("where_nonzero", "gives positions"),
];

fn check(tables: &[&[Row]]) {
    for row in tables.iter().copied().flatten() {
        row.check();
    }
}

#[test]
fn primitives_of_one_operand() {
    let at = Site::here("test");
    for &op in Unary::ALL {
        let (domain, tape) = (domain_of_unary(op), Tape::new());
        if is_for_integers(domain) {
            is_refused(op.name(), tape.var(&Tensor::scalar(1.5)).apply_unary(op, at));
        } else {
            one_operand(op.name(), domain, |x| x.apply_unary(op, at).unwrap());
        }
    }
}

/// Checks half of the primitives of two operands. The two halves are two tests, so that they run on two threads.
fn primitives_of_two_operands(half: usize) {
    let at = Site::here("test");
    for &op in Binary::ALL.iter().skip(half).step_by(2) {
        let ((first, second, itself), tape) = (domain_of_binary(op), Tape::new());
        if is_for_integers(first) {
            let (x, y) = (tape.var(&Tensor::scalar(1.5)), tape.var(&Tensor::scalar(2.5)));
            is_refused(op.name(), x.apply_binary(op, &y, at));
        } else {
            two_operands(op.name(), first, second, itself, |x, y| {
                let [x, y] = broadcast_tensors(&[x, y])[..] else { unreachable!() };
                x.apply_binary(op, &y, at).unwrap()
            });
        }
    }
}

#[test]
fn primitives_of_two_operands_one_half() {
    primitives_of_two_operands(0);
}

#[test]
fn primitives_of_two_operands_other_half() {
    primitives_of_two_operands(1);
}

#[test]
fn primitive_reductions() {
    let at = Site::here("test");
    for &op in Reduction::ALL {
        one_operand(op.name(), UNEQUAL, |x| {
            let axes: Vec<usize> = (0..x.shape().rank()).collect();
            if x.shape().numel() == 0 { x } else { x.apply_reduce(op, &axes, at).unwrap() }
        });
    }
}

#[test]
fn elementwise_of_one() {
    check(&[elementwise::ONE]);
}

#[test]
fn elementwise_of_two() {
    check(&[elementwise::TWO]);
}

#[test]
fn in_place() {
    check(&[elementwise::IN_PLACE, reductions::IN_PLACE, movement::IN_PLACE, movement::BY_INDEX_IN_PLACE]);
}

#[test]
fn reductions_and_norms() {
    check(&[reductions::ANY, reductions::PAIRS, reductions::SHAPED]);
}

#[test]
fn movements() {
    check(&[movement::ANY, movement::PAIRS, movement::SHAPED]);
}

#[test]
fn matrix_products() {
    check(&[products::SHAPED]);
}

#[test]
fn layers() {
    check(&[networks::ANY, networks::SHAPED]);
}

#[test]
fn losses_of_two() {
    check(&[networks::PAIRS]);
}

#[test]
fn operations_without_a_derivative_report_it() {
    let (x, y) = (tensor(Plain(&[4]), QUOTIENT, 0.0), tensor(Plain(&[4]), NEAR_ONE, 0.37));
    has_no_derivative("floor_divide", &x, |x| x.floor_divide(x.tape().constant(&y)));
    has_no_derivative("floor_divide_", &x, |x| {
        let mut z = x;
        z.floor_divide_(x.tape().constant(&y));
        z
    });
    has_no_derivative("heaviside", &y, |y| y.tape().constant(&x).heaviside(y));
    has_no_derivative("heaviside", &y, |y| {
        let mut z = y.tape().constant(&x);
        z.heaviside_(y);
        z
    });
}

#[test]
fn no_operation_is_forgotten() {
    let rows: BTreeSet<&str> = TABLES.iter().copied().flatten().map(|row| row.name).collect();
    let primitives = Unary::ALL.iter().map(|op| op.name()).chain(Binary::ALL.iter().map(|op| op.name()));
    let checked: BTreeSet<&str> = rows.iter().copied().chain(primitives).collect();
    let without: BTreeSet<&str> = WITHOUT.iter().map(|&(name, _)| name).collect();
    let all = sources::operations();
    let all: BTreeSet<&str> = all.iter().map(String::as_str).collect();

    let forgotten: Vec<_> = all.iter().filter(|name| !checked.contains(*name) && !without.contains(*name)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?} need a row in a table of this test, or a reason in WITHOUT");
    let gone: Vec<_> = rows.union(&without).filter(|name| !all.contains(*name)).collect();
    assert!(gone.is_empty(), "{gone:?} are not operations");
    let both: Vec<_> = rows.intersection(&without).collect();
    assert!(both.is_empty(), "{both:?} have a row, and a reason to have none");
}

#[test]
fn every_row_calls_the_operation_that_it_names() {
    for row in TABLES.iter().copied().flatten() {
        // In the table, a reduction may be written with `_keepdim`.
        let names = |word: &str| word.strip_suffix("_keepdim").unwrap_or(word) == row.name;
        let called = row.call.split(|c: char| !c.is_alphanumeric() && c != '_').any(names);
        assert!(called, "the row of {} ({}) is: {}", row.name, row.case, row.call);
    }
}

/// Checks that every operation has one line in `docs/operations.md`, which names its in-place form. Checks that the columns of derivatives
/// and of broadcasting agree with the checks here.
#[test]
fn the_documentation_lists_every_operation_correctly() {
    let lines = documentation::operations();
    let all = sources::operations();
    let mut listed = BTreeSet::new();
    for line in &lines {
        assert!(listed.insert(line.name.clone()), "docs/operations.md lists {} twice", line.name);
        let form = format!("{}_", line.name);
        let in_place = if all.contains(&form) { form } else { String::new() };
        if line.in_place != "itself" {
            assert_eq!(line.in_place, in_place, "docs/operations.md, form in place of {}", line.name);
            listed.insert(in_place);
        }
        assert!(
            ["exact", "rounded", "primitive", "parts", "sum", "product"].contains(&line.accuracy.as_str()),
            "docs/operations.md, accuracy of {}: {}",
            line.name,
            line.accuracy
        );
    }
    listed.remove("");
    let missing: Vec<_> = all.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/operations.md lacks {missing:?}");
    let gone: Vec<_> = listed.difference(&all).collect();
    assert!(gone.is_empty(), "docs/operations.md lists {gone:?}, which are not operations");

    for line in &lines {
        let rows = || TABLES.iter().copied().flatten().filter(|row| row.name == line.name);
        let without = WITHOUT.iter().any(|&(name, _)| name == line.name);
        let domain = Unary::ALL.iter().find(|op| op.name() == line.name).map(|&op| domain_of_unary(op));
        let domain = domain.or_else(|| {
            let op = Binary::ALL.iter().find(|op| op.name() == line.name)?;
            let (first, second, _) = domain_of_binary(*op);
            Some(if matches!(first, Fixed(_)) { second } else { first })
        });
        let has_one = !without && (rows().next().is_some() || !domain.is_none_or(is_for_integers));
        let has_second = has_one && !matches!(domain, Some(Single(_)));
        assert_eq!(
            line.derivatives,
            [has_one, has_one, has_second],
            "docs/operations.md, derivatives of {}",
            line.name
        );
        if rows().any(|row| row.case.is_empty() && matches!(row.operands, Operands::Two(..))) {
            assert_eq!(line.broadcasts, "yes", "docs/operations.md, whether {} broadcasts", line.name);
        }
    }
}

/// Checks that the gradient check finds a wrong derivative: this product treats its second factor as a constant.
#[test]
#[should_panic(expected = "mul, half of it of Plain")]
fn a_wrong_derivative_is_found() {
    let wrong: &[Row] = row::one! { mul "half of it": REAL => |x| x.mul(x.detach()); };
    check(&[wrong]);
}
