//! Conversions between masks, classes and indices. The results are plain data, through which no gradient flows.

use wengert_macros::twins;

use crate::memory::reserve::addressable;
use crate::ops::TensorLike;
use crate::ops::index::positions::{indices_in, one_dim, positions_in, unravel};
use crate::ops::reduce::reductions::nonzero_mask;
use crate::{Error, Site, Sizes, Tensor, ensure};

/// The indices of the elements that are not zero.
#[twins(blanket)]
pub trait Nonzero: TensorLike {
    /// Returns the indices `[count, rank]` of the elements that are not zero (`true` for masks), in row-major order. NaN is not
    /// zero. PyTorch: `nonzero`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[0.0, 3.0], [4.0, 0.0]]);
    /// assert_eq!(x.nonzero(), Tensor::from([[0i64, 1], [1, 0]]));
    /// ```
    #[doc(alias("argwhere", "flatnonzero"))]
    fn try_nonzero(&self) -> Result<Tensor<i64>, Self::Error> {
        let at = Site::here("nonzero");
        Ok(indices_in(&nonzero_mask(self, at)?, at)?)
    }

    /// Returns the indices of the elements that are not zero (`true` for masks), as one vector per dimension.
    /// [`index`](crate::ops::ItemIndexing::index) accepts these vectors. A tensor of rank 0 counts as a vector of one element. PyTorch:
    /// `where` with one argument, `nonzero` with `as_tuple=True`.
    fn try_where_nonzero(&self) -> Result<Vec<Tensor<i64>>, Self::Error> {
        let at = Site::here("where_nonzero");
        let positions = positions_in(&nonzero_mask(self, at)?, at)?;
        Ok(unravel(&one_dim(&self.shape()), &positions.row_major_elements(at)?).into_iter().map(Tensor::from).collect())
    }
}

/// Returns one-hot vectors along a new last dimension: 1 at the class, 0 elsewhere. The new dimension has the size `classes`, or the largest
/// class plus 1 if `classes` is `None`. Refuses classes below 0, classes from `classes` on, and an empty `index` if `classes` is `None` or 0.
/// PyTorch: `nn.functional.one_hot`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let encoded = one_hot(&Tensor::from([2i64, 0]), Some(3));
/// assert_eq!(encoded, Tensor::from([[0i64, 0, 1], [1, 0, 0]]));
/// ```
#[twins]
pub fn try_one_hot(index: &Tensor<i64>, classes: Option<usize>) -> Result<Tensor<i64>, Error> {
    let at = Site::here("one_hot");
    let line = index.elements(at)?;
    ensure!(line.iter().all(|&class| class >= 0), at, "Class values must be non-negative.");
    // On a 32-bit system, a class may not fit into `usize`. It is then above every number of classes.
    let number = |&class: &i64| usize::try_from(class).map_or(usize::MAX, |class| class.saturating_add(1));
    let least = line.iter().max().map_or(0, number);
    let classes = classes.unwrap_or(least);
    ensure!(classes > 0 || !line.is_empty(), at, "Can not infer total number of classes from empty tensor.");
    ensure!(classes >= least, at, "Class values must be smaller than num_classes.");
    let mut shape = index.shape().clone();
    shape.push(classes);
    Tensor::build_on_zeros(&shape, at, |out| {
        for (row, &class) in line.iter().enumerate() {
            out[row * classes + class as usize] = 1;
        }
    })
}

/// Converts row-major positions in a tensor of shape `shape` to indices: one tensor per dimension, in the shape of `positions`. A position
/// out of range counts modulo the number of elements. Refuses positions in a tensor without elements.
/// [`index`](crate::ops::ItemIndexing::index) accepts these tensors. PyTorch: `unravel_index`.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::ops::unravel_index;
/// use wengert::prelude::*;
///
/// let x = Tensor::from([[3.0, 1.0, 2.0], [5.0, 9.0, 4.0]]);
/// let index = unravel_index(&x.argmax_all(), x.shape());
/// assert_eq!((index[0].item(), index[1].item()), (1, 1));
/// ```
#[twins]
pub fn try_unravel_index(positions: &Tensor<i64>, shape: impl Into<Sizes>) -> Result<Vec<Tensor<i64>>, Error> {
    let at = Site::here("unravel_index");
    let shape = shape.into().resolve_plain(at)?;
    ensure!(
        positions.numel() == 0 || !shape.contains(&0),
        at,
        "'shape' cannot have zero dimensions when 'indices' is non-empty, but got {shape}"
    );
    addressable::<bool>(&shape, at)?;
    let along = |(&size, &stride): (&usize, &isize)| {
        Tensor::build(positions.shape(), at, |out| {
            for (out, position) in out.iter_mut().zip(positions.iter()) {
                *out = position.div_euclid(stride as i64).rem_euclid(size as i64);
            }
        })
    };
    shape.iter().zip(shape.row_major_strides().iter()).map(along).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn a_number_has_no_dimensions_to_index() {
        assert_eq!(Tensor::scalar(2.0).nonzero().shape(), &[1, 0]);
        assert_eq!(Tensor::scalar(0.0).nonzero().shape(), &[0, 0]);
        assert_eq!(Tensor::scalar(2.0).where_nonzero()[0].to_vec(), [0]);
        assert_eq!(Tensor::from([f64::NAN, 0.0]).where_nonzero()[0].to_vec(), [0]);
        assert_eq!(Tensor::<f64>::zeros([0, 3]).nonzero().shape(), &[0, 2]);
    }

    #[test]
    fn indices_of_every_rank() {
        for shape in [&[7][..], &[1], &[3, 5], &[2, 3, 4], &[2, 3, 1, 4], &[2, 1, 3, 2, 2], &[0, 4], &[4, 0, 2]] {
            let mask = Tensor::<bool>::from_fn(shape, |i| i.iter().sum::<usize>() % 3 != 1);
            let flat: Vec<i64> = (0..).zip(mask.iter()).filter(|&(_, chosen)| chosen).map(|(i, _)| i).collect();
            let columns = unravel(mask.shape(), &flat);
            let expected: Vec<i64> =
                (0..flat.len()).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
            let indices = mask.nonzero();
            assert_eq!((indices.shape().to_vec(), indices.to_vec()), (vec![flat.len(), shape.len()], expected));
            let chosen: Vec<i64> =
                Tensor::<i64>::arange(mask.numel()).reshape(mask.shape()).masked_select(&mask).to_vec();
            assert_eq!(chosen, flat);
        }
    }

    /// The indices and the error message are PyTorch's.
    #[test]
    fn positions_become_indices() {
        let indices = unravel_index(&Tensor::from([[0i64, 5], [3, -1]]), [2, 3]);
        assert_eq!(indices, [Tensor::from([[0i64, 1], [1, 1]]), Tensor::from([[0i64, 2], [0, 2]])]);
        let outside = unravel_index(&Tensor::from([6i64, -7]), [2, 3]);
        assert_eq!(outside, [Tensor::from([0i64, 1]), Tensor::from([0i64, 2])]);
        assert!(unravel_index(&Tensor::from([0i64]), ()).is_empty());
        assert_eq!(unravel_index(&Tensor::zeros([0]), [0, 3])[1].shape(), &[0]);
        assert_eq!(
            try_unravel_index(&Tensor::from([1i64]), [0, 3]).unwrap_err().sentence(),
            "'shape' cannot have zero dimensions when 'indices' is non-empty, but got [0, 3]"
        );
    }

    #[test]
    fn classes_out_of_range_are_refused() {
        assert_eq!(one_hot(&Tensor::from([1i64]), None).shape(), &[1, 2]);
        assert!(try_one_hot(&Tensor::from([3i64]), Some(3)).is_err());
        assert!(try_one_hot(&Tensor::from([-1i64]), None).is_err());
        assert!(try_one_hot(&Tensor::zeros([0]), None).is_err());
    }
}
