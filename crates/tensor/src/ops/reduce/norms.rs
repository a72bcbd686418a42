//! Norms, and the distances and angles computed from them.
//!
//! The norm is a primitive because of its derivatives. At the zero vector, at zero elements and at ties, PyTorch has conventions for the
//! first and second derivative. These conventions differ from the derivatives of the formula. The derivative rule states these conventions.

use wengert_macros::{precompiled, twins};

use crate::kernel::distance::{self, PAIR_ROWS, RowNorm};
use crate::memory::scratch::Scratch;
use crate::ops::primitive::pair::{broadcast_operand_shapes, broadcast_two, expand};
use crate::ops::reduce::reductions::{drop_reduced, reduce_dims};
use crate::ops::shape::views::{squeeze, unsqueeze};
use crate::ops::{ArrayOperand, Compose, Composite, Result, TensorLike};
use crate::shape::dims;
use crate::{Binary, Compare, Dims, Error, Float, Position, Reduction, Shape, Site, Tensor, Unary, ensure};

/// Norms and distances.
#[twins(blanket)]
pub trait Norms: TensorLike<Elem: Float> {
    /// Returns the `ord`-norm over `dims`: (Σ |x|ᵒʳᵈ)^(1/ord), also for `ord` below 1 and negative `ord`. For `ord` = ∞, the norm is the
    /// largest magnitude; for -∞, the smallest magnitude; for 0, the number of nonzero elements. Squares and powers may overflow even if
    /// the norm would not.
    ///
    /// The derivative is 0 at the zero vector, and everywhere if `ord` is 0. For ∞, the elements of the largest magnitude share the gradient
    /// evenly; for -∞, the elements of the smallest magnitude. The norm of no elements is 0, but is refused if `ord` is negative, ∞
    /// or NaN (PyTorch gives 0 for NaN). PyTorch: `linalg.vector_norm`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([3.0, -4.0]);
    /// assert_eq!(x.vector_norm(2, ..).item(), 5.0);
    /// assert_eq!(x.vector_norm(f64::INFINITY, ..).item(), 4.0);
    /// assert_eq!(x.vector_norm_keepdim(1, 0).to_vec(), [7.0]);
    /// ```
    #[doc(alias("norm", "linalg_norm"))]
    #[keepdim]
    fn try_vector_norm(&self, ord: impl Into<f64>, dims: impl Into<Dims>) -> Result<Self> {
        norm(self, ord.into(), &dims.into(), keepdim, Site::here("vector_norm"))
    }

    /// Returns the `p`-norm of all elements. [`vector_norm`](Self::vector_norm) reduces over some dimensions. PyTorch: `norm`.
    fn try_norm(&self, p: impl Into<f64>) -> Result<Self> {
        norm(self, p.into(), &Dims::from(..), false, Site::here("norm"))
    }

    /// Returns the `p`-norm of `self - other` over all elements. The shapes broadcast. The derivative is 0 if both operands are equal.
    /// PyTorch: `dist`.
    fn try_dist(&self, other: impl ArrayOperand<Self>, p: impl Into<f64>) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("dist");
        let (x, y) = broadcast_two(self, other, at)?;
        norm(&x.apply_binary(Binary::Sub, &y, at)?, p.into(), &Dims::from(..), false, at)
    }

    /// Returns the distances `[…, m, n]` by the `p`-norm between all rows of `self`, `[…, m, k]`, and all rows of `other`, `[…, n, k]`. The
    /// batch dimensions broadcast. The derivative is 0 at equal points. For p = ∞, each coordinate with the largest difference gets the whole
    /// gradient. A difference that is NaN gives NaN. Refuses a negative or NaN `p`, fewer than two dimensions, and rows of different lengths.
    /// PyTorch: `cdist`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[0.0, 0.0], [3.0, 4.0]]);
    /// assert_eq!(x.cdist(&x, 2), Tensor::from([[0.0, 5.0], [5.0, 0.0]]));
    /// ```
    fn try_cdist(&self, other: impl ArrayOperand<Self>, p: impl Into<f64>) -> Result<Self> {
        let other = &other.into_array(self)?;
        distances(self, other, p.into(), Site::here("cdist"))
    }

    /// Returns the distances by the `p`-norm between all pairs of rows of `self`, `[n, k]`, as a vector of n (n - 1)/2 elements: row 0 with
    /// rows 1, 2, …, then row 1 with rows 2, 3, …. The derivative is as for [`cdist`](Self::cdist). Refuses a negative or NaN `p`, and a rank
    /// other than 2. PyTorch: `nn.functional.pdist`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]);
    /// assert_eq!(x.pdist(2).to_vec(), [5.0, 10.0, 5.0]);
    /// ```
    fn try_pdist(&self, p: impl Into<f64>) -> Result<Self> {
        let (p, at) = (p.into(), Site::here("pdist"));
        let shape = self.shape();
        ensure!(shape.rank() == 2, at, "pdist only supports 2D tensors, got: {}D", shape.rank());
        ensure!(p >= 0.0, at, "pdist only supports non-negative p values");
        let n = shape[0];
        // One of the factors n and n - 1 is even, so the division by 2 is exact.
        let pairs =
            if n.is_multiple_of(2) { (n / 2).saturating_mul(n.saturating_sub(1)) } else { n.saturating_mul(n / 2) };
        if let Some(norm) = row_norm(self, p, shape[1]) {
            return self.try_constant(&self.to_tensor(at)?.pair_distances(norm, pairs, at)?);
        }
        // Line 0 has the first row of each pair, and line 1 the second row.
        let rows = Tensor::build(&Shape::from([2, pairs]), at, |out: &mut [i64]| {
            let (first, second) = out.split_at_mut(pairs);
            let all = (0..n as i64).flat_map(|i| (i + 1..n as i64).map(move |j| (i, j)));
            first.iter_mut().zip(second).zip(all).for_each(|((first, second), pair)| (*first, *second) = pair);
        })?;
        let rows = |k| self.apply_index_select(0, &squeeze(&rows.slice_axis(0, k, 1, at)?, 0, at)?, at);
        let difference = rows(0)?.apply_binary(Binary::Sub, &rows(1)?, at)?;
        squeeze(&distance_norm(&difference, p, 1, at)?, 1, at)
    }

    /// Returns the `p`-norm of `self` - `other` + `eps` over the last dimension. The shapes broadcast. PyTorch: `pairwise_distance`.
    #[keepdim]
    fn try_pairwise_distance(&self, other: impl ArrayOperand<Self>, p: impl Into<f64>, eps: f64) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("pairwise_distance");
        let (x, y) = broadcast_two(self, other, at)?;
        let difference = x.apply_binary(Binary::Sub, &y, at)?.plus(eps, at)?;
        norm(&difference, p.into(), &Dims::from(-1), keepdim, at)
    }

    /// Divides `self` by its `p`-norm over `dims`, or by `eps` if `eps` is larger than the norm. PyTorch: `nn.functional.normalize`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([3.0, 4.0]).normalize(2, 0, 1e-12).to_vec(), [0.6, 0.8]);
    /// assert_eq!(Tensor::from([0.0, 0.0]).normalize(2, 0, 1e-12).to_vec(), [0.0, 0.0]);
    /// ```
    fn try_normalize(&self, p: impl Into<f64>, dims: impl Into<Dims>, eps: f64) -> Result<Self> {
        let at = Site::here("normalize");
        let length = norm(self, p.into(), &dims.into(), true, at)?;
        let divisor = length.replace_where(&length.compare(Compare::Le, eps, at)?, eps, at)?;
        self.apply_binary(Binary::Div, &expand(&divisor, &self.shape(), at)?, at)
    }

    /// Multiplies each slice along `dim` with a `p`-norm above `maxnorm` by `maxnorm` / (norm + 1e-7), and returns the result. Other slices
    /// stay unchanged, also if their norm is NaN. Refuses a `p` that is not positive, a negative or NaN `maxnorm`, and fewer than two
    /// dimensions. PyTorch: `renorm`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let rows = Tensor::from([[3.0, 4.0], [0.3, 0.4]]).renorm(2, 0, 1.0);
    /// let expected = Tensor::from([[0.6, 0.8], [0.3, 0.4]]);
    /// assert!(rows.allclose(&expected, 1e-6, 0.0, false));
    /// ```
    fn try_renorm(&self, p: impl Into<f64>, dim: impl Position, maxnorm: f64) -> Result<Self> {
        let (p, rank, at) = (p.into(), self.shape().rank(), Site::here("renorm"));
        ensure!(p > 0.0, at, "renorm: non-positive-norm not supported");
        ensure!(maxnorm >= 0.0, at, "renorm: expected maxnorm to be >= 0 but got {maxnorm}");
        ensure!(rank > 1, at, "renorm: input needs at least 2 dimensions, got {rank} dimensions");
        let axis = dims::axis(dim, rank, at)? as isize;
        let others: Vec<isize> = (0..rank as isize).filter(|&other| other != axis).collect();
        if maxnorm == f64::INFINITY {
            return Ok(self.clone());
        }
        let others = Dims::from(&others[..]);
        let length = norm(&self.apply_detach(at)?, p, &others, true, at)?;
        let is_long = length.compare(Compare::Gt, maxnorm, at)?;
        // Slices that are not too long stay unchanged, so their norms have no influence. The derivatives of these norms may be NaN, so 0
        // replaces these slices.
        let length = match self.is_plain() {
            true => length,
            false => norm(&self.choose(&expand(&is_long, &self.shape(), at)?, 0.0, at)?, p, &others, true, at)?,
        };
        let factor = length.fill_shape(maxnorm, &length.shape(), at)?.divide_by(&length.plus(1e-7, at)?, at)?;
        self.times(&factor.choose(&is_long, 1.0, at)?, at)
    }

    /// Returns the cosine of the angle between `self` and `other` along `dim`: the sum of the products, divided by both 2-norms. Each norm
    /// is raised to at least `eps`. The shapes broadcast. The result is 0 if one operand is zero and `eps` is positive. Refuses a negative
    /// or NaN `eps`. PyTorch: `nn.functional.cosine_similarity`.
    fn try_cosine_similarity(&self, other: impl ArrayOperand<Self>, dim: impl Position, eps: f64) -> Result<Self> {
        let other = &other.into_array(self)?;
        let at = Site::here("cosine_similarity");
        ensure!(eps >= 0.0, at, "eps must be non-negative, got: {eps}");
        let (x, y) = broadcast_two(self, other, at)?;
        let shape = x.shape();
        let dims = Dims::from(dim.position());
        let unit = |x: &Self| {
            let length = norm(x, 2.0, &dims, true, at)?;
            // The bound `eps` only changes the value. As in PyTorch, the derivative is the derivative of the unbounded length.
            let short = length.compare(Compare::Lt, eps, at)?;
            let length = length.with_value(&length.apply_detach(at)?.replace_where(&short, eps, at)?, at)?;
            x.apply_binary(Binary::Div, &expand(&length, &shape, at)?, at)
        };
        let product = unit(&x)?.apply_binary(Binary::Mul, &unit(&y)?, at)?;
        reduce_dims(&product, Reduction::Sum, &dims, false, at)
    }
}

/// Returns the `ord`-norm of `x` over `dims`, with the conventions of [`vector_norm`](Norms::vector_norm).
pub(crate) fn norm<A: TensorLike<Elem: Float>>(x: &A, ord: f64, dims: &Dims, keepdim: bool, at: Site) -> Result<A> {
    let shape = x.shape();
    let axes = dims.resolve_or_all(shape.rank(), at)?;
    let has_identity = ord >= 0.0 && ord != f64::INFINITY;
    if let Some(axis) = axes.iter().find(|&&axis| shape[axis] == 0 && !has_identity) {
        let place = match axes.len() == shape.rank() {
            true => "on an empty tensor because".to_owned(),
            false => format!("on the dimension {axis} because this dimension is empty and"),
        };
        let message =
            format!("linalg.vector_norm cannot compute the {ord} norm {place} the operation does not have an identity");
        return Err(Error::EmptyReduction { message, at }.into());
    }
    drop_reduced(x.apply_norm(ord, &axes, at)?, &axes, keepdim, at)
}

/// A composite operation: the `ord`-norm over `axes`, which the result keeps with size 1.
pub(crate) struct Norm<'a> {
    pub(crate) ord: f64,
    pub(crate) axes: &'a [usize],
}

impl Composite for Norm<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x]: [&A; 1], at: Site) -> Result<A> {
        let Norm { ord, axes } = *self;
        let each = |op: Unary| x.apply_unary(op, at);
        if ord == 0.0 {
            let ones = x.fill_shape(1.0, &x.shape(), at)?;
            return ones.replace_where(&x.compare(Compare::Eq, 0.0, at)?, 0.0, at)?.sum_over(axes, at);
        }
        if ord == 1.0 {
            return each(Unary::Abs)?.sum_over(axes, at);
        }
        if ord == 2.0 {
            return each(Unary::Square)?.sum_over(axes, at)?.apply_unary(Unary::Sqrt, at);
        }
        let size = each(Unary::Abs)?;
        if ord.is_infinite() {
            let op = if ord > 0.0 { Reduction::Amax } else { Reduction::Amin };
            return if axes.is_empty() { Ok(size) } else { size.apply_reduce(op, axes, at) };
        }
        let sum = size.combine(Binary::Pow, ord, at)?.sum_over(axes, at)?;
        sum.combine(Binary::Pow, 1.0 / ord, at)
    }
}

fn distances<A: TensorLike<Elem: Float>>(x: &A, y: &A, p: f64, at: Site) -> Result<A> {
    let (left, right) = (x.shape(), y.shape());
    for (name, rank) in [("X1", left.rank()), ("X2", right.rank())] {
        ensure!(rank >= 2, at, "cdist only supports at least 2D tensors, {name} got: {rank}D");
    }
    let (first, second) = (left[left.rank() - 1], right[right.rank() - 1]);
    ensure!(first == second, at, "X1 and X2 must have the same number of columns. X1: {first} X2: {second}");
    ensure!(p >= 0.0, at, "cdist only supports non-negative p values");
    let batch = |shape: &Shape| Shape::from(&shape[..shape.rank() - 2]);
    let mut whole = broadcast_operand_shapes(&[&batch(&left), &batch(&right)], at)?;
    if let Some(norm) = row_norm(x, p, first) {
        return x.try_constant(&x.to_tensor(at)?.row_distances(&y.to_tensor(at)?, norm, whole, at)?);
    }
    let (rows, columns) = (left.rank() - 1, right.rank() - 2);
    for size in [left[rows - 1], right[columns], first] {
        whole.push(size);
    }
    let (x, y) = (unsqueeze(x, rows, at)?, unsqueeze(y, columns, at)?);
    let difference = expand(&x, &whole, at)?.apply_binary(Binary::Sub, &expand(&y, &whole, at)?, at)?;
    let axis = whole.rank() - 1;
    squeeze(&distance_norm(&difference, p, axis, at)?, axis, at)
}

/// Returns the norm that a kernel computes directly from rows of `terms` elements. Returns `None` if `x` is recorded, there are no terms, or
/// no kernel computes this norm.
fn row_norm<A: TensorLike>(x: &A, p: f64, terms: usize) -> Option<RowNorm> {
    let norm = match p {
        1.0 => RowNorm::One,
        2.0 => RowNorm::Two,
        f64::INFINITY => RowNorm::Largest,
        _ => return None,
    };
    (x.is_plain() && terms > 0).then_some(norm)
}

#[precompiled]
impl<T: Float> Tensor<T> {
    /// Returns the distances between all rows of `self` and of `other`. The batch dimensions of both broadcast to `batch`.
    fn row_distances(&self, other: &Self, norm: RowNorm, batch: Shape, at: Site) -> Result<Self, Error> {
        let (rank, mut shape) = (batch.rank(), batch.clone());
        let matrices = |x: &Self| {
            let mut whole = batch.clone();
            x.shape()[x.rank() - 2..].iter().for_each(|&size| whole.push(size));
            expand(x, &whole, at)
        };
        let (x, y) = (matrices(self)?, matrices(other)?);
        let (m, n, terms) = (x.shape()[rank], y.shape()[rank], x.shape()[rank + 1]);
        shape.push(m);
        shape.push(n);
        let (x, y) = (x.row_major_elements(at)?, y.row_major_elements(at)?);
        Tensor::build(&shape, at, |out| {
            let matrices = x.chunks(m.max(1) * terms).zip(y.chunks(n.max(1) * terms));
            for (out, (x, y)) in out.chunks_mut((m * n).max(1)).zip(matrices) {
                distance::distances(norm, x, y, terms, out);
            }
        })
    }

    /// Returns the distances between the `pairs` pairs of different rows of `self`, a matrix.
    fn pair_distances(&self, norm: RowNorm, pairs: usize, at: Site) -> Result<Self, Error> {
        let (x, rows, terms) = (self.row_major_elements(at)?, self.shape()[0], self.shape()[1]);
        Tensor::build(&Shape::from([pairs]), at, |out| {
            let mut scratch = Scratch::new(rows.saturating_mul(PAIR_ROWS))?;
            distance::pair_distances(norm, &x, terms, &mut scratch, out);
            Ok(())
        })
    }
}

/// Returns the p-norm over `axis` of `x`, the difference of two points. Derivatives of all orders are 0 at equal points and, except for the
/// 2-norm, at equal coordinates. For p = ∞, each coordinate with the largest magnitude gets the whole gradient. (`vector_norm` has other
/// conventions.)
fn distance_norm<A: TensorLike<Elem: Float>>(x: &A, p: f64, axis: usize, at: Site) -> Result<A> {
    let shape = x.shape();
    let size = x.apply_unary(Unary::Abs, at)?;
    let sum = |x: &A| x.apply_reduce(Reduction::Sum, &[axis], at);
    if p == 0.0 || shape[axis] == 0 {
        // Counts the differences that are not 0. A difference that is NaN gives NaN. The derivative is 0.
        let differences = x.apply_unary(Unary::Sign, at)?.apply_unary(Unary::Abs, at)?;
        let unknown = x.compare(Compare::Ne, x, at)?;
        return sum(&differences.replace_where(&unknown, f64::NAN, at)?);
    }
    if p == 1.0 {
        return sum(&size);
    }
    if p.is_infinite() {
        let largest = size.apply_detach(at)?.apply_reduce(Reduction::Amax, &[axis], at)?;
        let over = expand(&largest, &shape, at)?;
        let tied = size.replace_where(&size.apply_compare(Compare::Ne, &over, at)?, 0.0, at)?;
        return sum(&tied)?.with_value(&largest, at);
    }
    // The power may have no finite derivative at 0. So zeros are replaced by 1 before the power, and the results at these elements by 0.
    let power = |x: &A, exponent: f64| {
        let zero = x.compare(Compare::Eq, 0.0, at)?;
        let powers = x.replace_where(&zero, 1.0, at)?.combine(Binary::Pow, exponent, at)?;
        powers.replace_where(&zero, 0.0, at)
    };
    let powers = if p == 2.0 { x.apply_unary(Unary::Square, at)? } else { power(&size, p)? };
    power(&sum(&powers)?, 1.0 / p)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn every_order() {
        let x = Tensor::from([0.0, 3.0, -4.0]);
        let table = [(0.0, 2.0), (1.0, 7.0), (2.0, 5.0), (INF, 4.0), (-INF, 0.0), (-1.0, 0.0)];
        for (ord, expected) in table {
            assert_eq!(x.vector_norm(ord, ..).item(), expected, "{ord}");
        }
        assert!((x.norm(3).item() - 91f64.cbrt()).abs() < 1e-14);
        assert!((x.norm(0.5).item() - (3f64.sqrt() + 2.0).powi(2)).abs() < 1e-13);
        assert_eq!(Tensor::from([[3.0, 4.0], [0.0, 1.0]]).vector_norm_keepdim(2, 1), Tensor::from([[5.0], [1.0]]));
        assert_eq!(Tensor::scalar(-2.0).norm(2).item(), 2.0);
    }

    /// The error messages are PyTorch's.
    #[test]
    fn only_long_slices_are_shortened() {
        let x = Tensor::from([[3.0, 0.1, f64::NAN], [-4.0, 0.2, 1.0]]);
        let y = x.renorm(2, -1, 1.0);
        let factor = 1.0 / (5.0 + 1e-7);
        assert_eq!(y.select(1, 0).to_vec(), [3.0 * factor, -4.0 * factor]);
        assert_eq!(y.select(1, 1).to_vec(), [0.1, 0.2]);
        assert_eq!(y.select(1, 2).to_vec()[1], 1.0);
        assert_eq!(x.narrow(1, 0, 2).renorm(1, 0, 0.0), Tensor::zeros([2, 2]));
        assert_eq!(Tensor::from([[INF, 1.0]]).renorm(INF, 1, 2.0).to_vec()[1], 1.0);
        assert_eq!(x.narrow(1, 0, 2).renorm(0.5, 0, INF), x.narrow(1, 0, 2));
        assert_eq!(Tensor::<f64>::zeros([2, 0]).renorm(2, 0, 1.0).shape(), &[2, 0]);
        let sentence = |x: &Tensor<f64>, p: f64, bound| x.try_renorm(p, 0, bound).unwrap_err().sentence();
        assert_eq!(sentence(&x, 0.0, 1.0), "renorm: non-positive-norm not supported");
        assert_eq!(sentence(&x, f64::NAN, 1.0), "renorm: non-positive-norm not supported");
        assert_eq!(sentence(&x, 2.0, -1.0), "renorm: expected maxnorm to be >= 0 but got -1");
        assert_eq!(sentence(&x.select(0, 0), 2.0, 1.0), "renorm: input needs at least 2 dimensions, got 1 dimensions");
        assert!(x.try_renorm(2, 2, 1.0).is_err());
    }

    #[test]
    fn large_norms_equal_the_formula() {
        let x = Tensor::<f64>::from_fn([60, 50, 7], |i| ((i[0] * 31 + i[1] * 17 + i[2] * 7) % 101) as f64 - 50.0);
        for dims in [&[0isize][..], &[1], &[2], &[1, 2], &[0, 2], &[0, 1, 2]] {
            for x in [x.clone(), x.permute([2, 0, 1]).contiguous().permute([1, 2, 0])] {
                // All values are small whole numbers, so every order of summation gives the same result.
                assert_eq!(x.vector_norm_keepdim(1, dims), x.abs().sum_keepdim(dims), "{dims:?}");
                assert_eq!(x.vector_norm_keepdim(2, dims), x.square().sum_keepdim(dims).sqrt(), "{dims:?}");
                assert_eq!(x.vector_norm_keepdim(INF, dims), x.abs().amax_keepdim(dims), "{dims:?}");
                assert_eq!(x.vector_norm_keepdim(-INF, dims), x.abs().amin_keepdim(dims), "{dims:?}");
            }
        }
        let mut x = x.cast::<f32>();
        x.fill_(1e30);
        assert_eq!(x.norm(2).item(), f32::INFINITY);
        assert_eq!(x.norm(INF).item(), 1e30);
    }

    #[test]
    fn of_nothing() {
        let empty = Tensor::<f64>::zeros([2, 0]);
        assert_eq!(empty.vector_norm(2, 1).to_vec(), [0.0, 0.0]);
        assert_eq!(
            Tensor::<f64>::zeros([0]).try_norm(INF).unwrap_err().sentence(),
            "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an identity"
        );
        assert!(empty.try_vector_norm(-1, 1).is_err());
        assert_eq!(empty.vector_norm(INF, 0).shape(), &[0]);
    }

    #[test]
    fn distances_between_all_rows() {
        let x = Tensor::from([[0.0, 0.0], [1.0, 1.0]]);
        let y = Tensor::from([[[1.0, 0.0]], [[4.0, 3.0]]]);
        assert_eq!(x.cdist(&y, 1), Tensor::from([[[1.0], [1.0]], [[7.0], [5.0]]]));
        assert_eq!(x.cdist(&y, INF), Tensor::from([[[1.0], [1.0]], [[4.0], [3.0]]]));
        assert_eq!(x.cdist(&y, 0), Tensor::from([[[1.0], [1.0]], [[2.0], [2.0]]]));
        assert_eq!(x.cdist(&y, 2).get(&[1, 0, 0]), Some(5.0));
        assert_eq!(Tensor::<f64>::zeros([2, 0]).cdist(Tensor::zeros([3, 0]), 2), Tensor::zeros([2, 3]));
        let error = x.try_cdist(Tensor::zeros([4, 3]), 2).unwrap_err();
        assert_eq!(error.sentence(), "X1 and X2 must have the same number of columns. X1: 2 X2: 3");
        let error = Tensor::<f64>::zeros([2, 5, 3]).try_cdist(Tensor::zeros([3, 4, 3]), 2).unwrap_err();
        assert_eq!(
            error.sentence(),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
        );
    }

    /// The values are PyTorch's.
    #[test]
    fn distances_between_pairs_of_rows() {
        let x = Tensor::from([[0.0, 0.0], [3.0, 4.0], [6.0, 7.0]]);
        let table = [
            (0.0, [2.0, 2.0, 2.0]),
            (1.0, [7.0, 13.0, 6.0]),
            (3.0, [4.497941445275415, 8.237661384280925, 3.7797631496846193]),
            (INF, [4.0, 7.0, 3.0]),
            (0.5, [13.928203230275509, 25.96148139681572, 11.999999999999998]),
        ];
        for (p, expected) in table {
            let got: Vec<f64> = x.pdist(p).to_vec();
            assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-14), "{p}: {got:?}");
        }
        for (shape, count) in [([0, 3], 0), ([1, 3], 0), ([3, 0], 3), ([4, 1], 6)] {
            assert_eq!(Tensor::<f64>::zeros(shape).pdist(2), Tensor::zeros([count]), "{shape:?}");
        }
        let sentence = |shape: &[usize], p: f64| Tensor::<f64>::zeros(shape).try_pdist(p).unwrap_err().sentence();
        assert_eq!(sentence(&[3], 2.0), "pdist only supports 2D tensors, got: 1D");
        assert_eq!(sentence(&[3, 1], -1.0), "pdist only supports non-negative p values");
        assert_eq!(sentence(&[3, 1], f64::NAN), "pdist only supports non-negative p values");
    }

    /// Compares distances with the norms of the differences, for numbers of rows and terms around the sizes of the kernel's blocks.
    #[test]
    fn distances_are_norms_of_differences() {
        for [m, n, terms] in [[1, 1, 1], [3, 70, 5], [130, 65, 130], [5, 200, 8], [2, 16, 64], [300, 40, 3]] {
            let of = |rows: usize, seed: usize| {
                Tensor::<f32>::from_fn([2, rows, terms], |i| ((i[0] * 7 + i[1] * 31 + i[2] * 17 + seed) % 23) as f32)
            };
            let (x, y) = (of(m, 0), of(n, 5).narrow(0, 0, 1));
            let differences = x.unsqueeze(2) - y.unsqueeze(1);
            for p in [1.0, 2.0, INF] {
                // All sums are small whole numbers, so every order of summation gives the same result.
                let expected = differences.vector_norm(p, 3);
                assert_eq!(x.cdist(&y, p), expected, "{m} {n} {terms} {p}");
                let flipped = |x: &Tensor<f32>| x.flip([2]).transpose(1, 2).contiguous().transpose(1, 2);
                assert_eq!(flipped(&x).cdist(flipped(&y), p), expected);
                let (rows, table) = (x.select(0, 1), x.cdist(&x, p).select(0, 1));
                let above: Vec<f32> = (0..m)
                    .flat_map(|i| (i + 1..m).map(move |j| (i, j)))
                    .map(|(i, j)| table.get(&[i, j]).unwrap())
                    .collect();
                assert_eq!(rows.pdist(p).to_vec(), above);
            }
        }
        let (x, nan) = (Tensor::from([[INF, 0.0], [1.0, 2.0]]), Tensor::from([[f64::NAN, 0.0]]));
        // As in PyTorch, a difference that is NaN gives NaN, also for p = 0. (`dist` counts it as 1 for p = 0.)
        assert!(x.cdist(&nan, 0).isnan().all(..).item() && x.pdist(0).to_vec() == [2.0]);
        assert!(Tensor::from([[INF, 0.0], [INF, 1.0]]).pdist(0).item().is_nan());
        assert_eq!(x.narrow(0, 0, 1).dist(&nan, 0).item(), 1.0);
        for p in [1.0, 2.0, INF] {
            assert!(x.cdist(&nan, p).isnan().all(..).item());
            assert_eq!(x.cdist(&x, p).to_vec()[1..], [INF, INF, 0.0]);
            assert_eq!(Tensor::<f64>::zeros([0, 2]).cdist(&x, p).shape(), &[0, 2]);
        }
    }

    #[test]
    fn angles_and_pairs() {
        let x = Tensor::from([[3.0, 4.0], [0.0, 0.0]]);
        let y = Tensor::from([4.0, 3.0]);
        let cosines: Vec<f64> = x.cosine_similarity(&y, 1, 1e-8).to_vec();
        assert!((cosines[0] - 0.96).abs() < 1e-15 && cosines[1] == 0.0);
        let error = x.try_cosine_similarity(&y, 1, -1.0).unwrap_err();
        assert_eq!(error.sentence(), "eps must be non-negative, got: -1");
        assert_eq!(x.pairwise_distance(&x, 2, 1.0).to_vec(), [2f64.sqrt(), 2f64.sqrt()]);
        assert_eq!(x.dist(&y, 1).item(), 9.0);
    }
}
