//! Tests that broadcasting equals `ndarray`'s broadcasting, and a loop over indices, on random shapes and layouts.
//!
//! `ndarray`'s `broadcast` expands an array to a given shape, and its operators join two operands, as Wengert's do. `ndarray` has no
//! function that joins more shapes. So the joined shape is compared with the rule written out here, and the expansion of each operand with
//! `ndarray`'s.

use proptest::collection::vec;
use proptest::prelude::*;
use wengert::tensor::prelude::*;
use wengert::tensor::{Shape, broadcast};
use wengert_tests::{Recipe, Thinning, integers, recipes, shapes, thinnings};

/// Returns the joined shape by the rule of the broadcasting notes, one dimension after the other, from the last one on.
/// Returns `None` if the shapes do not fit.
fn rule(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut joined = vec![1; rank];
    for shape in shapes {
        for (back, &size) in shape.iter().rev().enumerate() {
            let place = &mut joined[rank - 1 - back];
            match (*place, size) {
                (1, _) => *place = size,
                (other, size) if size == 1 || size == other => {}
                _ => return None,
            }
        }
    }
    Some(joined)
}

/// Returns the element of `x` that a broadcast result reads at `index`.
fn element(x: &Tensor<f64>, index: &[usize]) -> f64 {
    let trailing = &index[index.len() - x.rank()..];
    let operand_index: Vec<usize> =
        trailing.iter().zip(x.shape().iter()).map(|(&i, &size)| if size == 1 { 0 } else { i }).collect();
    x.get(&operand_index).expect("an index of the result")
}

fn operands(shape: &[usize], parts: [(&Thinning, &Recipe); 2], seed: u64) -> [Tensor<f64>; 2] {
    let mut draw = integers(seed);
    parts.map(|(thinning, recipe)| recipe.tensor(&thinning.of(shape), &mut draw))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_joined_shape_follows_the_rule(
        shape in shapes(), thinned in vec(thinnings(), 0..4), unrelated in vec(shapes(), 0..2),
    ) {
        let mut size_lists: Vec<Vec<usize>> = thinned.iter().map(|thinning| thinning.of(&shape)).collect();
        size_lists.extend(unrelated);
        let expected = rule(&size_lists.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let shapes_to_join: Vec<Shape> = size_lists.iter().map(|sizes| Shape::from(&sizes[..])).collect();
        let joined = broadcast::join(&shapes_to_join.iter().collect::<Vec<_>>());
        prop_assert_eq!(joined.as_ref().ok().map(|shape| shape.to_vec()), expected);
        if let Ok(joined) = joined {
            for shape in &shapes_to_join {
                let zeros = Tensor::<u8>::zeros(shape);
                let expanded = zeros.expand(&joined);
                let theirs = zeros.as_ndarray();
                let theirs = theirs.broadcast(joined.sizes());
                prop_assert_eq!(theirs.map(|view| view.shape().to_vec()), Some(expanded.shape().to_vec()));
            }
        }
    }

    #[test]
    fn operations_equal_ndarray_and_a_loop(
        shape in shapes(), t in thinnings(), u in thinnings(), a in recipes(), b in recipes(), seed in any::<u64>(),
    ) {
        let [x, y] = operands(&shape, [(&t, &a), (&u, &b)], seed);
        let joined = rule(&[x.shape(), y.shape()]).expect("both shapes come from one shape");
        let (theirs, others) = (x.as_ndarray(), y.as_ndarray());
        type Operation = fn(f64, f64) -> f64;
        let table: [(&str, Tensor<f64>, _, Operation); 4] = [
            ("add", x.add(&y), &theirs + &others, |x, y| x + y),
            ("sub", x.sub(&y), &theirs - &others, |x, y| x - y),
            ("mul", &x * &y, &theirs * &others, |x, y| x * y),
            // The added 1/2 keeps the divisor away from zero.
            ("div", &x / (&y + 0.5), &theirs / (&others + 0.5), |x, y| x / (y + 0.5)),
        ];
        for (name, ours, theirs, loops) in table {
            prop_assert_eq!(ours.shape().sizes(), &joined[..]);
            prop_assert_eq!(ours.as_ndarray(), theirs, "{}", name);
            let looped = Tensor::from_fn(&joined[..], |index| loops(element(&x, index), element(&y, index)));
            prop_assert_eq!(ours, looped, "{}", name);
        }
        let expected = Tensor::from_fn(&joined[..], |index| element(&x, index) < element(&y, index));
        prop_assert_eq!(x.lt(&y), expected);
    }

    #[test]
    fn in_place_the_left_side_keeps_its_shape(
        shape in shapes(), t in thinnings(), u in thinnings(), a in recipes(), b in recipes(), seed in any::<u64>(),
    ) {
        let [x, y] = operands(&shape, [(&t, &a), (&u, &b)], seed);
        let sum = x.add(&y);
        let mut written = x.clone();
        match written.try_add_(&y) {
            Ok(()) => prop_assert_eq!(written, sum),
            Err(_) => {
                prop_assert!(sum.shape() != x.shape());
                prop_assert_eq!(written, x);
            }
        }
    }
}

#[test]
fn both_rules_refuse_shapes_that_do_not_fit() {
    let table: [(&[usize], &[usize]); 4] =
        [(&[5, 2, 4, 1], &[3, 1, 1]), (&[0], &[2, 2]), (&[2], &[3]), (&[4, 32, 14, 14], &[32])];
    for (a, b) in table {
        assert_eq!(rule(&[a, b]), None);
        assert!(Tensor::<f64>::zeros(a).try_add(Tensor::zeros(b)).is_err(), "{a:?} {b:?}");
    }
}
