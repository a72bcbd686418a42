//! Sums of products over shared dimensions, which are named by letters or by position.
//!
//! Operands are combined two at a time, from the left. A named dimension is contracted if neither the result nor a later operand has the
//! name. It is summed before the product if only one operand has the name, or if one of two sizes is 1. Otherwise it is summed in or after
//! the product. Dimensions that are not contracted broadcast; size 1 matches any size.

use wengert_macros::twins;

use crate::ops::linalg::equation::{Equation, Label};
use crate::ops::primitive::pair::expand;
use crate::ops::{ArrayOperand, IntoArray, Result, TensorLike, arrays};
use crate::shape::broadcast;
use crate::{Axes, Binary, Dims, Error, Number, Reduction, Shape, Site, View, ensure};

/// The dimensions over which `tensordot` sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contracted(Pairing);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pairing {
    /// Pairs the last dimensions of the first operand with the first dimensions of the second operand. The field is the number of pairs.
    Adjacent(usize),
    /// Pairs each dimension in the first list, of the first operand, with the dimension at the same position in the second list, of the
    /// second operand.
    Listed(Vec<isize>, Vec<isize>),
}

impl Contracted {
    /// Returns the paired dimensions of operands with the given ranks, one list for each operand.
    fn dims(&self, ranks: [usize; 2], at: Site) -> Result<(Vec<isize>, Vec<isize>), Error> {
        match &self.0 {
            &Pairing::Adjacent(n) => {
                let fits = n <= ranks[0].min(ranks[1]);
                ensure!(fits, at, "tensordot expects dims < ndim_a or ndim_b, but got dims={n}");
                let n = n as isize;
                Ok(((-n..0).collect(), (0..n).collect()))
            }
            Pairing::Listed(first, second) => {
                ensure!(first.len() == second.len(), at, "both dimension lists should have same length");
                for (rank, dims) in ranks.into_iter().zip([first, second]) {
                    let exists = rank > 0 || dims.is_empty();
                    ensure!(exists, at, IndexRange, "Dimension specified as {} but tensor has no dimensions", dims[0]);
                }
                Ok((first.clone(), second.clone()))
            }
        }
    }
}

impl From<usize> for Contracted {
    /// Pairs the last `n` dimensions of the first operand with the first `n` dimensions of the second operand.
    fn from(n: usize) -> Self {
        Contracted(Pairing::Adjacent(n))
    }
}

impl From<(&[isize], &[isize])> for Contracted {
    /// Pairs each dimension in the first list with the dimension at the same place in the second list. The first list has dimensions of the
    /// first operand, and the second list has dimensions of the second operand.
    fn from((first, second): (&[isize], &[isize])) -> Self {
        Contracted(Pairing::Listed(first.to_vec(), second.to_vec()))
    }
}

impl<const N: usize> From<([isize; N], [isize; N])> for Contracted {
    /// Pairs each dimension in the first list with the dimension at the same place in the second list. The first list has dimensions of the
    /// first operand, and the second list has dimensions of the second operand.
    fn from((first, second): ([isize; N], [isize; N])) -> Self {
        Contracted(Pairing::Listed(first.to_vec(), second.to_vec()))
    }
}

/// Sums of products over pairs of dimensions. ([`einsum`] names the dimensions by letters instead.)
#[twins(blanket)]
pub trait Contractions: TensorLike<Elem: Number> {
    /// Returns the sums of products over pairs of dimensions: the last `n` of `self` and the first `n` of `other`, or two lists of
    /// dimensions. The result has the remaining dimensions of `self`, then the remaining dimensions of `other`. A contracted
    /// dimension of size 1 matches any size. Refuses dimensions that an operand does not have, dimensions named twice, and lists of
    /// different lengths. PyTorch: `tensordot`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (x, y) = (Tensor::<f64>::ones([2, 3, 4]), Tensor::ones([4, 3, 5]));
    /// assert_eq!(x.tensordot(&y, ([1, 2], [1, 0])), Tensor::full([2, 5], 12.0));
    /// assert_eq!(x.tensordot(&y, 1).shape(), &[2, 3, 3, 5]);
    /// ```
    fn try_tensordot(&self, other: impl ArrayOperand<Self>, dims: impl Into<Contracted>) -> Result<Self> {
        tensordot(self, &other.into_array(self)?, &dims.into(), Site::here("tensordot"))
    }
}

fn tensordot<A: TensorLike>(x: &A, y: &A, dims: &Contracted, at: Site) -> Result<A> {
    let (left, right) = (x.shape(), y.shape());
    let (own_dims, other_dims) = dims.dims([left.rank(), right.rank()], at)?;
    let first = Dims::from(&own_dims[..]).resolve(left.rank(), at)?;
    let second = Dims::from(&other_dims[..]).resolve(right.rank(), at)?;
    for (k, (&i, &j)) in first.iter().zip(&second).enumerate() {
        ensure!(
            left[i] == right[j] || left[i] == 1 || right[j] == 1,
            at,
            "contracted dimensions need to match, but first has size {} in dim {} and second has size {} in dim {}",
            left[i],
            own_dims[k],
            right[j],
            other_dims[k]
        );
    }
    // Each dimension gets a number as its label: first the dimensions of `x`, then the dimensions of `y`. A contracted dimension of `y`
    // gets the label of its partner in `x`.
    let name = |axis: usize| Label::Ellipsis(axis as isize);
    let own: Vec<Label> = (0..left.rank()).map(name).collect();
    let others: Vec<Label> = (0..right.rank())
        .map(|axis| match second.iter().position(|&other| other == axis) {
            Some(k) => name(first[k]),
            None => name(left.rank() + axis),
        })
        .collect();
    let kept: Vec<Label> = own
        .iter()
        .filter(|label| !others.contains(label))
        .chain(others.iter().filter(|label| !own.contains(label)))
        .copied()
        .collect();
    let x = LabelledArray { array: x.clone(), labels: own };
    x.multiply(LabelledArray { array: y.clone(), labels: others }, &kept, at)?.arrange(&kept, at)
}

/// Returns the sums of products of `operands` that the equation describes. A letter in several operands aligns their dimensions; size 1
/// matches any size. Dimensions that are missing in the result are summed over. A letter that one operand has twice selects its diagonal.
/// `...` stands for any number of dimensions, which broadcast. Without `->` the result has the dimensions of `...`, then the letters that
/// occur once, in alphabetical order with capitals first. Refuses an invalid equation, and operands that do not fit it. PyTorch: `einsum`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(einsum("ij,kj->ik", &[&x, &x]), x.matmul(&x.t()));
/// assert_eq!(einsum("ii", &[&x]).item(), 5.0);
/// assert_eq!(einsum("...j->...", &[x]).to_vec(), [3.0, 7.0]);
/// ```
#[twins]
pub fn try_einsum<I: IntoArray<Array = A> + Clone, A: TensorLike<Elem: Number>>(
    equation: &str,
    operands: &[I],
) -> Result<A> {
    let (operands, at) = (arrays(operands), Site::here("einsum"));
    let refuse = |message: String| A::Error::from(Error::argument(at, message));
    let shapes: Vec<Shape> = operands.iter().map(A::shape).collect();
    let ranks: Vec<usize> = shapes.iter().map(Shape::rank).collect();
    let equation = Equation::parse(equation, &ranks).map_err(refuse)?;
    check_sizes(&equation, &shapes).map_err(refuse)?;
    let mut named = Vec::with_capacity(operands.len());
    for (array, labels) in operands.iter().zip(&equation.inputs) {
        named.push(LabelledArray { array: array.clone(), labels: labels.clone() }.take_diagonals(at)?);
    }
    let mut rest = named.into_iter();
    let Some(mut total) = rest.next() else {
        unreachable!("an equation has at least one operand, and the number of operands was compared with it")
    };
    while let Some(next) = rest.next() {
        let later = rest.as_slice().iter().flat_map(|operand| &operand.labels);
        let kept: Vec<Label> = equation.output.iter().chain(later).copied().collect();
        total = total.multiply(next, &kept, at)?;
    }
    total.sum(|label| !equation.output.contains(&label), at)?.arrange(&equation.output, at)
}

/// Refuses different sizes with the same label, unless the sizes belong to different operands and one size is 1.
fn check_sizes(equation: &Equation, shapes: &[Shape]) -> Result<(), String> {
    let mut seen: Vec<(Label, usize)> = Vec::new();
    for (operand, (labels, shape)) in equation.inputs.iter().zip(shapes).enumerate() {
        for (axis, &label) in labels.iter().enumerate() {
            let name = match label {
                Label::Letter(letter) => letter.to_string(),
                Label::Ellipsis(_) => "...".to_owned(),
            };
            let size = shape[axis];
            let earlier = labels[..axis].iter().position(|&other| other == label);
            if let Some(first) = earlier.filter(|&first| shape[first] != size) {
                return Err(format!(
                    "einsum(): subscript {name} is repeated for operand {operand} but the sizes don't match, {size} != {}",
                    shape[first]
                ));
            }
            match seen.iter_mut().find(|(other, _)| *other == label) {
                None => seen.push((label, size)),
                Some((_, known)) => match broadcast::join_sizes(*known, size) {
                    Some(joined) => *known = joined,
                    None => {
                        return Err(format!(
                            "einsum(): subscript {name} has size {size} for operand {operand} which does not broadcast with \
                             previously seen size {known}"
                        ));
                    }
                },
            }
        }
    }
    Ok(())
}

/// An array whose dimensions have names.
struct LabelledArray<A> {
    array: A,
    labels: Vec<Label>,
}

impl<A: TensorLike> LabelledArray<A> {
    fn size(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&own| own == label).map(|axis| self.array.shape()[axis])
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    /// Replaces each group of dimensions that share a name by their diagonal.
    fn take_diagonals(mut self, at: Site) -> Result<Self, A::Error> {
        let twice = |labels: &[Label]| {
            (0..labels.len()).find_map(|first| {
                let second = (first + 1..labels.len()).find(|&second| labels[second] == labels[first])?;
                Some((first, second))
            })
        };
        while let Some((first, second)) = twice(&self.labels) {
            self.array = self.array.apply_view(View::Diagonal { offset: 0, first, second }, at)?;
            self.labels.remove(second);
            let label = self.labels.remove(first);
            self.labels.push(label);
        }
        Ok(self)
    }

    /// Sums over the dimensions for whose names `is_summed` is true.
    fn sum(self, is_summed: impl Fn(Label) -> bool, at: Site) -> Result<Self, A::Error> {
        let axes: Axes = (0..self.labels.len()).filter(|&axis| is_summed(self.labels[axis])).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let shape = self.array.shape().without(&axes);
        let array = self.array.apply_reduce(Reduction::Sum, &axes, at)?.apply_view(View::Reshape(shape), at)?;
        let labels = self.labels.into_iter().filter(|&label| !is_summed(label)).collect();
        Ok(LabelledArray { array, labels })
    }

    /// Orders the dimensions as in `labels`, which contains all names of `self`. Names that `self` lacks become dimensions of size 1.
    fn arrange(&self, labels: &[Label], at: Site) -> Result<A> {
        let order: Axes = labels.iter().filter_map(|label| self.labels.iter().position(|own| own == label)).collect();
        let shape = labels.iter().map(|&label| self.size(label).unwrap_or(1)).collect();
        let in_order = order.iter().enumerate().all(|(position, &axis)| position == axis);
        let array = if in_order { self.array.clone() } else { self.array.apply_view(View::Permute(order), at)? };
        if array.shape() == shape { Ok(array) } else { array.apply_view(View::Reshape(shape), at) }
    }

    /// Returns the product of `self` and `other`, summed over the dimensions whose names are not in `kept`.
    fn multiply(self, other: Self, kept: &[Label], at: Site) -> Result<Self, A::Error> {
        // A contracted dimension is summed before the product if only one operand has it, or if it has size 1 in one operand.
        let is_summed = |label: Label| !kept.contains(&label);
        let alone = |label: Label, x: &Self, y: &Self| {
            is_summed(label) && y.size(label).is_none_or(|size| size == 1 || x.size(label) == Some(1))
        };
        let (left, right): (Vec<Label>, Vec<Label>) = (
            self.labels.iter().copied().filter(|&label| alone(label, &self, &other)).collect(),
            other.labels.iter().copied().filter(|&label| alone(label, &other, &self)).collect(),
        );
        let x = self.sum(|label| left.contains(&label), at)?;
        let y = other.sum(|label| right.contains(&label), at)?;
        let both = |label: &Label| x.has(*label) && y.has(*label);
        let select =
            |of: &Self, f: &dyn Fn(&Label) -> bool| of.labels.iter().copied().filter(|l| f(l)).collect::<Vec<_>>();
        let batch = select(&x, &|label| both(label) && !is_summed(*label));
        let inner = select(&x, &|label| both(label) && is_summed(*label));
        let rows = select(&x, &|label| !both(label));
        let columns = select(&y, &|label| !both(label));
        let size = |label: Label| match (x.size(label), y.size(label)) {
            (Some(1) | None, Some(size)) | (Some(size), _) => size,
            (None, None) => 1,
        };
        let sizes = |labels: &[Label]| labels.iter().map(|&label| size(label)).collect::<Shape>();
        let labels = [&batch[..], &rows, &columns].concat();
        let whole = sizes(&labels);
        if inner.is_empty() || rows.is_empty() && columns.is_empty() {
            // There is nothing to contract, or every matrix of both operands would have a single row or column. An elementwise product is
            // then faster than matrix products.
            let all = [&labels[..], &inner].concat();
            let (x, y) = (x.arrange(&all, at)?, y.arrange(&all, at)?);
            let over = sizes(&all);
            let (x, y) = (expand(&x, &over, at)?, expand(&y, &over, at)?);
            let axes: Axes = (labels.len()..all.len()).collect();
            let array = match axes.is_empty() {
                true => x.apply_binary(Binary::Mul, &y, at)?,
                false => x.apply_product_sum(&y, &axes, at)?.apply_view(View::Reshape(whole), at)?,
            };
            return Ok(LabelledArray { array, labels });
        }
        let (b, m, k, n) = (sizes(&batch), sizes(&rows).numel(), sizes(&inner).numel(), sizes(&columns).numel());
        let matrices = |named: &Self, order: [&[Label]; 2], rows: usize, columns: usize| {
            let array = named.arrange(&[&batch[..], order[0], order[1]].concat(), at)?;
            let own: Shape = array.shape()[..batch.len()].iter().copied().chain([rows, columns]).collect();
            let array = array.apply_view(View::Reshape(own), at)?;
            expand(&array, &b.iter().copied().chain([rows, columns]).collect(), at)
        };
        let x = matrices(&x, [&rows, &inner], m, k)?;
        let y = matrices(&y, [&inner, &columns], k, n)?;
        let array = x.apply_matmul(&y, at)?.apply_view(View::Reshape(whole), at)?;
        Ok(LabelledArray { array, labels })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    fn counted(shape: &[usize]) -> Tensor<f64> {
        let mut next = 0.0;
        Tensor::from_fn(shape, |_| {
            next += 1.0;
            next
        })
    }

    #[test]
    fn equations() {
        let (x, y) = (counted(&[2, 3]), counted(&[3, 4]));
        assert_eq!(einsum("ij,jk->ki", &[x.clone(), y.clone()]), x.matmul(&y).t());
        assert_eq!(einsum("ij->", std::slice::from_ref(&x)).item(), 21.0);
        assert_eq!(einsum("ji", std::slice::from_ref(&x)), x.t());
        assert_eq!(einsum("ij,ij->i", &[x.clone(), x.clone()]).to_vec(), [14.0, 77.0]);
        assert_eq!(einsum("ij,j", &[x.clone(), Tensor::ones([3])]).to_vec(), [6.0, 15.0]);
        let cube = counted(&[2, 2, 2]);
        assert_eq!(einsum("iii->i", std::slice::from_ref(&cube)).to_vec(), [1.0, 8.0]);
        assert_eq!(einsum("iij->j", std::slice::from_ref(&cube)).to_vec(), [8.0, 10.0]);
        assert_eq!(einsum("bij,bjk->bik", &[cube.clone(), cube.clone()]), cube.matmul(&cube));
        assert_eq!(einsum("i,j,k->kji", &[counted(&[2]), counted(&[3]), counted(&[2])]).get(&[1, 2, 1]), Some(12.0));
        assert_eq!(einsum("ij,jk,kl", &[x.clone(), y.clone(), y.t()]), x.matmul(&y).matmul(y.t()));
    }

    #[test]
    fn size_one_matches_any_size() {
        let x = counted(&[2, 3]);
        assert_eq!(einsum("ij,ij->i", &[x.clone(), Tensor::full([1, 1], 2.0)]).to_vec(), [12.0, 30.0]);
        assert_eq!(einsum("ij,jk", &[x.clone(), Tensor::ones([1, 2])]), x.sum_keepdim(1).expand([2, 2]));
        assert_eq!(einsum("...ij,...jk", &[counted(&[5, 1, 2, 3]), counted(&[4, 3, 2])]).shape(), &[5, 4, 2, 2]);
        assert_eq!(einsum("ij,jk", &[Tensor::<f64>::zeros([2, 0]), Tensor::zeros([0, 3])]), Tensor::zeros([2, 3]));
    }

    #[test]
    fn refusals() {
        let (x, y) = (counted(&[2, 3]), counted(&[4, 2]));
        let sentence =
            |equation: &str, operands: &[Tensor<f64>]| try_einsum(equation, operands).unwrap_err().sentence();
        assert_eq!(
            sentence("ij,jk->ik", &[x.clone(), y.clone()]),
            "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"
        );
        assert!(
            sentence("ii", std::slice::from_ref(&x))
                .contains("is repeated for operand 0 but the sizes don't match, 3 != 2")
        );
        assert_eq!(
            x.try_tensordot(&y, 1).unwrap_err().sentence(),
            "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 4 in dim 0"
        );
        assert!(x.try_tensordot(&y, ([0, 0], [0, 1])).is_err());
    }

    #[test]
    fn dimensions_by_position() {
        let (x, y) = (counted(&[2, 3]), counted(&[3, 4]));
        assert_eq!(x.tensordot(&y, 1), x.matmul(&y));
        assert_eq!(x.tensordot(&y, ([1], [0])), x.matmul(&y));
        assert_eq!(x.tensordot(&x, ([0, 1], [0, 1])).item(), 91.0);
        assert_eq!(x.tensordot(&y, 0).shape(), &[2, 3, 3, 4]);
        assert_eq!(x.tensordot(Tensor::ones([1, 2]), 1), x.sum_keepdim(1).expand([2, 2]));
    }

    /// The error messages are PyTorch's.
    #[test]
    fn dimensions_that_an_operand_does_not_have_are_refused() {
        let (number, x) = (Tensor::scalar(2.0), counted(&[2]));
        let few = |n: usize| format!("tensordot expects dims < ndim_a or ndim_b, but got dims={n}");
        let sentence = |x: &Tensor<f64>, y: &Tensor<f64>, n: usize| x.try_tensordot(y, n).unwrap_err().sentence();
        for n in [1, 2, 1 << 40, usize::MAX] {
            assert_eq!(sentence(&number, &x, n), few(n));
            assert_eq!(sentence(&number, &number, n), few(n));
        }
        assert_eq!(sentence(&x, &x, 2), few(2));
        assert_eq!(number.tensordot(&x, 0).to_vec(), [2.0, 4.0]);
        for (x, y) in [(&number, &x), (&number, &number)] {
            let error = x.try_tensordot(y, ([0], [0])).unwrap_err();
            assert_eq!(error.sentence(), "Dimension specified as 0 but tensor has no dimensions");
        }
        let error = x.try_tensordot(&number, ([0], [-1])).unwrap_err();
        assert!(matches!(error, crate::Error::IndexRange { .. }));
        assert_eq!(error.sentence(), "Dimension specified as -1 but tensor has no dimensions");
    }
}
