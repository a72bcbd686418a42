//! Tests reductions over every layout against the oracle (simple loops over indices).

use rand::Rng;

use crate::kernel::reduce::arg as kernel_arg;
use crate::kernel::testing::layouts::{Recipe, Sample, generator};
use crate::kernel::testing::numbers::Oracle;
use crate::kernel::testing::oracle::{arg, columns, reduce};
use crate::kernel::testing::support::{Case, assert_bits, check_cases, large_recipes, site, unsigned};
use crate::ops::TensorLike;
use crate::{Float, Reduction, Shape, Tensor};

fn reductions<T: Oracle>(shape: &Shape, recipe: &Recipe, axes: &[usize], seed: u64) {
    let rng = &mut generator(seed);
    // Long products have only the factors 1 and -1. A product of many factors of 2 would exceed the range of the exponent.
    let few = axes.iter().map(|&axis| shape[axis]).product::<usize>() <= 100;
    for &op in Reduction::ALL {
        let x = recipe.tensor(shape, || match op {
            Reduction::Sum => T::small(rng),
            Reduction::Prod if few => T::factor(rng),
            Reduction::Prod => T::from_i64(i64::from(rng.next_u32() % 2) * 2 - 1),
            _ => T::any(rng),
        });
        let expected: Vec<T> = columns(x.source(), axes).iter().map(|column| reduce(op, column)).collect();
        let got = x.apply_reduce(op, axes, site()).unwrap();
        let kept = |axis: usize| if axes.contains(&axis) { 1 } else { shape[axis] };
        assert_eq!(*got.shape(), (0..shape.rank()).map(kept).collect::<Shape>());
        // It is unspecified which of 0 and -0 a reduction finds first. So the signs of zeros are removed.
        let expected: Vec<T> = expected.into_iter().map(unsigned).collect();
        assert_bits(&got.map(unsigned), &expected, (op, shape, axes));
    }
    let x = recipe.tensor(shape, || T::any(rng));
    for &axis in axes.iter().filter(|&&axis| shape[axis] > 0) {
        for largest in [true, false] {
            let expected: Vec<i64> = columns(x.source(), &[axis]).iter().map(|column| arg(largest, column)).collect();
            let (kept, line) = x.layout().split(&[axis]);
            let mut got = vec![0; expected.len()];
            kernel_arg::arg(largest, x.source().data, &kept, &line, &mut got).unwrap();
            assert_eq!(got, expected, "{shape} {axis}");
        }
    }
}

/// Tests sums with rounding errors. A sum of n elements x is computed as a tree. A leaf of the tree adds at most 64 elements in sequence to
/// each of its partial sums. Then the partial sums of all leaves are added, in at most 3 + log₂ n further steps for each element. So the
/// error is at most (64 + 3 + log₂ n) u Σ|x|, where u is half the type's epsilon (Higham 1993, 2.4).
fn rounded_sums<T: Float + Oracle>(shape: &Shape, recipe: &Recipe, axes: &[usize], seed: u64) {
    let rng = &mut generator(seed);
    let x = recipe.tensor(shape, || T::from_f64((f64::any(rng).clamp(-8.0, 8.0) * 1.1).max(-8.0)));
    let got = x.apply_reduce(Reduction::Sum, axes, site()).unwrap().to_vec();
    for (got, column) in got.iter().zip(columns(x.source(), axes)) {
        let magnitude: f64 = column.iter().map(|x| x.to_f64().abs()).sum();
        let depth = 64.0 + 3.0 + (column.len().max(1) as f64).log2().ceil();
        let bound = depth * 0.5 * T::EPSILON.to_f64() * magnitude * 1.001;
        let difference = (got.to_f64() - exact_sum(&mut column.iter().map(|x| x.to_f64()))).abs();
        assert!(difference <= bound, "{shape} {axes:?}: {difference:e} > {bound:e}");
    }
}

/// Returns the sum of `values`. Rounding errors are summed separately and added at the end (A. Neumaier, 1974).
fn exact_sum(values: &mut dyn Iterator<Item = f64>) -> f64 {
    let (mut sum, mut error) = (0.0f64, 0.0);
    for x in values {
        let total = sum + x;
        error += if sum.abs() >= x.abs() { (sum - total) + x } else { (x - total) + sum };
        sum = total;
    }
    sum + error
}

#[test]
fn reductions_equal_the_oracle() {
    let exact = [reductions::<f32>, reductions::<f64>, reductions::<i64>, reductions::<u8>, reductions::<bool>];
    check_cases(&|Case { shape, recipes: [recipe, ..], chosen, seed, .. }| {
        let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| chosen[axis]).collect();
        for check in exact.into_iter().chain([rounded_sums::<f32>, rounded_sums::<f64>]) {
            check(shape, recipe, &axes, *seed);
        }
    });
}

#[test]
fn large_reductions_equal_the_oracle() {
    let shapes: [&[usize]; 7] =
        [&[70_001], &[2, 40_000], &[40_000, 3], &[300, 301], &[7, 600, 19], &[1025, 129], &[64, 9, 65, 2]];
    for shape in shapes.map(Shape::from) {
        let all: Vec<usize> = (0..shape.rank()).collect();
        let mut choices = vec![all.clone()];
        choices.extend(all.iter().map(|&axis| vec![axis]));
        choices.push(all.iter().copied().filter(|axis| axis % 2 == 0).collect());
        let mut seen = Vec::new();
        for recipe in large_recipes() {
            // Several recipes give the same layout of a long dimension. Equal layouts are tested once.
            let layout = recipe.layout(&shape);
            if seen.contains(&layout) {
                continue;
            }
            seen.push(layout);
            for axes in &choices {
                let ends = |x: Tensor<i64>| {
                    let columns = columns(x.source(), axes);
                    for op in [Reduction::Sum, Reduction::Amax] {
                        let expected: Vec<i64> = columns.iter().map(|column| reduce(op, column)).collect();
                        assert_bits(&x.apply_reduce(op, axes, site()).unwrap(), &expected, (op, &shape, axes));
                    }
                };
                let rng = &mut generator(7);
                ends(recipe.tensor(&shape, || i64::any(rng)));
                rounded_sums::<f32>(&shape, &recipe, axes, 7);
            }
        }
    }
}
