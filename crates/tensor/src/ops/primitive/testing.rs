//! Compares formulas with the separate operations that they stand for.

use crate::ops::primitive::pair::{broadcast_operand_shapes, expand};
use crate::ops::{Composite, TensorLike, Views};
use crate::{Float, Site, Tensor};

/// Checks that the loop of a composite's formula gives the bits of its separate operations, for operands of several layouts.
pub(crate) fn check_formula<const N: usize>(composite: &impl Composite<N>) {
    assert!(composite.formula().is_some());
    let at = Site::here("check");
    check::<f32, N>(&|operands| composite.apply(operands, at).unwrap(), &|operands| {
        Tensor::apply_elementwise_composite(operands, composite, at).unwrap()
    });
    check::<f64, N>(&|operands| composite.apply(operands, at).unwrap(), &|operands| {
        Tensor::apply_elementwise_composite(operands, composite, at).unwrap()
    });
}

/// Computes a composite of tensors.
type Compute<'a, T, const N: usize> = &'a dyn Fn([&Tensor<T>; N]) -> Tensor<T>;

/// Compares `by_formula` with `by_operations`. The operands of `by_operations` are expanded to a common shape.
fn check<T: Float, const N: usize>(by_operations: Compute<T, N>, by_formula: Compute<T, N>) {
    let (inf, most) = (f64::INFINITY, T::MAX.to_f64());
    let values = [0.3, f64::NAN, -0.0, 3.0, -3.0, inf, 0.5, -2.9, 1.7, -inf, most, -0.7, 0.0, -most];
    let of = |shape: [usize; 2], step: usize| {
        Tensor::from_fn(shape, |i| T::from_f64(values[(i[0] * 5 + i[1] * step + i[1] / 14 + step) % 14]))
    };
    for [rows, columns] in [[0, 3], [1, 1], [2, 3], [5, 40], [40, 130], [70, 100]] {
        let whole = |k: usize| of([rows, columns], 2 * k + 1);
        let layouts: [&dyn Fn(usize) -> Tensor<T>; 5] = [
            &whole,
            &|k| of([columns, rows], 2 * k + 1).t(),
            &|k| if k == 0 { whole(k) } else { of([columns, rows], 2 * k + 1).t() },
            &|k| of([rows, 2 * columns], 2 * k + 1).reshape([rows as isize, columns as isize, 2]).select(2, 0),
            // A row, a column and a number.
            &|k| [of([1, columns], 3), of([rows, 1], 3), of([1, 1], 3)][k].clone(),
        ];
        for (number, layout) in layouts.iter().enumerate() {
            let operands: [Tensor<T>; N] = std::array::from_fn(layout);
            let (operands, at) = (operands.each_ref(), Site::here("check"));
            let shape = broadcast_operand_shapes(&operands.map(Tensor::shape), at).unwrap();
            let expanded = operands.map(|x| expand(x, &shape, at).unwrap());
            let (expected, got) = (by_operations(expanded.each_ref()), by_formula(operands));
            let same = |(x, y): (T, T)| x.to_f64().to_bits() == y.to_f64().to_bits() || x.is_nan() && y.is_nan();
            assert_eq!(got.shape(), expected.shape());
            assert!(got.iter().zip(expected.iter()).all(same), "layout {number} of [{rows}, {columns}], {}", T::DTYPE);
            assert!(!got.layout().has_internal_overlap());
        }
    }
}
