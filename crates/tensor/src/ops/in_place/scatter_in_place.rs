//! The in-place forms of methods of [`Scatter`](crate::ops::Scatter) that `#[in_place]` does not generate. As in PyTorch, the tensor that
//! is written to keeps its shape. A tensor with several elements at one position in memory is refused, except by
//! [`index_put_`](ScatterInPlace::index_put_), and by [`index_set_`](ScatterInPlace::index_set_) with index tensors or masks.

use wengert_macros::twins;

use crate::ops::index::scatter::{index_put, index_set, masked_scatter};
use crate::ops::primitive::pair::{check_fits, check_in_place_shape};
use crate::ops::{Argument, ArrayOperand, InPlace, IndexItem, Operand};
use crate::shape::broadcast;
use crate::{Error, Number, Site, Tensor};

/// In-place writes to the elements that index tensors select.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let mut x = Tensor::<f64>::zeros([3, 2]);
/// x.index_set_(&index_items![1], &Tensor::from([5.0, 6.0]));
/// assert_eq!(x, Tensor::from([[0.0, 0.0], [5.0, 6.0], [0.0, 0.0]]));
/// ```
#[twins(blanket)]
pub trait ScatterInPlace: InPlace {
    /// Sets `self` to `self.index_put(items, values, accumulate)`. PyTorch: `index_put_`.
    fn try_index_put_(
        &mut self,
        items: &[IndexItem],
        values: impl ArrayOperand<Self>,
        accumulate: bool,
    ) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        let values = &values.into_array(self)?;
        let at = Site::here("index_put_");
        index_put(self, items, values, accumulate, at)
    }

    /// Writes `value` to the elements that `items` select. PyTorch: `x[items] = value`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut x = Tensor::<f64>::zeros([2, 2]);
    /// x.index_set_(&index_items![1], &Tensor::from([3.0, 4.0]));
    /// assert_eq!(x.to_vec(), [0.0, 0.0, 3.0, 4.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If `items` do not fit `self`, `value` does not expand to the elements that `items` select, or memory cannot hold the result. If
    /// `items` has no index tensors and no masks, also if several elements of `self` share one position in memory, or `value` partly
    /// overlaps `self`.
    fn try_index_set_(&mut self, items: &[IndexItem], value: impl Operand<Self>) -> Result<(), Self::Error> {
        let at = Site::here("index_set_");
        check_fits::<Self>(value.number(), at)?;
        let value = value.into_argument(self)?;
        if crate::ops::index::items::is_view(items) {
            let source = if let Argument::Array(value) = &value { Some(value) } else { None };
            self.check_write(source, at)?;
        }
        index_set(self, items, value, at)
    }

    /// Sets `self` to `self.masked_scatter(mask, source)`. `mask` expands to the shape of `self`. PyTorch: `masked_scatter_`.
    ///
    /// # Errors
    ///
    /// If `mask` does not expand to the shape of `self`, or `source` has too few elements or partly overlaps `self`. If several elements of
    /// `self` share one position in memory, or memory cannot hold the result.
    fn try_masked_scatter_(&mut self, mask: &Tensor<bool>, source: impl ArrayOperand<Self>) -> Result<(), Self::Error> {
        let source = &source.into_array(self)?;
        let at = Site::here("masked_scatter_");
        self.check_write(Some(source), at)?;
        let shape = self.shape();
        let joined = broadcast::join(&[&shape, mask.shape()]).map_err(|mismatch| Error::Broadcast(mismatch, at))?;
        check_in_place_shape(&shape, mask.shape(), &joined, at)?;
        let value = masked_scatter(self, mask, source, at)?;
        self.put(value, at)
    }
}

#[cfg(test)]
mod tests {
    use crate::index_items;
    use crate::prelude::*;

    #[test]
    fn the_left_side_changes_alone() {
        let mut x = Tensor::from([1.0, 2.0, 3.0]);
        let before = x.clone();
        x.index_add_(0, &Tensor::from([0i64, 0]), Tensor::from([10.0, 20.0]), 1.0);
        x.index_put_(&index_items![&Tensor::from([1i64])], Tensor::scalar(0.0), false);
        x.masked_scatter_(&Tensor::from([false, false, true]), Tensor::from([7.0]));
        assert_eq!(x.to_vec(), [31.0, 0.0, 7.0]);
        assert_eq!(before.to_vec(), [1.0, 2.0, 3.0]);
    }

    /// A function that writes to a matrix with 4 rows.
    type Write = fn(&mut Tensor<f64>);

    const WRITES: [(&str, Write); 8] = [
        ("index_add_", |x| x.index_add_(0, &Tensor::from([3i64, 0]), Tensor::ones([2, 3]), 2.0)),
        ("index_copy_", |x| x.index_copy_(0, &Tensor::from([3i64, 0]), Tensor::ones([2, 3]))),
        ("index_fill_", |x| x.index_fill_(0, &Tensor::from([-1i64]), 7.0)),
        ("scatter_", |x| x.scatter_(1, &Tensor::from([[2i64], [0]]), Tensor::ones([2, 1]))),
        ("scatter_value_", |x| x.scatter_value_(1, &Tensor::from([[2i64], [0]]), 5.0)),
        ("scatter_add_", |x| x.scatter_add_(1, &Tensor::from([[2i64], [0]]), Tensor::ones([2, 1]))),
        ("index_put_", |x| x.index_put_(&index_items![&Tensor::from([1i64])], Tensor::ones([3]), true)),
        ("index_set_", |x| x.index_set_(&index_items![1, 2], 4.0)),
    ];

    #[test]
    fn a_tensor_that_shares_its_memory_with_no_other_is_written_in_place() {
        let start = |x: &Tensor<f64>| x.as_slice().unwrap().as_ptr();
        for (name, write) in WRITES {
            let mut x = Tensor::<f64>::arange(12).reshape([4, 3]);
            let place = start(&x);
            write(&mut x);
            assert_eq!(start(&x), place, "{name}");
            let shared = x.clone();
            write(&mut x);
            assert!(start(&shared) == place && start(&x) != place, "{name}");
        }
    }

    #[test]
    fn only_the_left_side_itself_changes() {
        for (name, write) in WRITES {
            let mut expected = Tensor::<f64>::arange(12).reshape([4, 3]);
            write(&mut expected);
            assert_ne!(expected, Tensor::arange(12).reshape([4, 3]), "{name}");
            let whole = Tensor::<f64>::arange(18).reshape([6, 3]) - 3.0;
            let mut part = whole.narrow(0, 1, 4);
            let mut transposed = Tensor::<f64>::arange(12).reshape([4, 3]).t().contiguous().t();
            for x in [&mut part, &mut transposed] {
                write(x);
                assert_eq!(*x, expected, "{name}");
            }
            assert_eq!(whole, Tensor::<f64>::arange(18).reshape([6, 3]) - 3.0, "{name}");
        }
    }

    #[test]
    fn the_left_side_can_be_the_source() {
        let (mut x, index) = (Tensor::from([1.0, 2.0, 3.0]), Tensor::from([2i64, 0, 0]));
        let source = x.clone();
        x.index_add_(0, &index, &source, 1.0);
        assert_eq!(x.to_vec(), [6.0, 2.0, 4.0]);
        let source = x.clone();
        x.scatter_add_(0, &index, source);
        assert_eq!(x.to_vec(), [12.0, 2.0, 10.0]);
    }

    #[test]
    fn a_refused_write_changes_nothing() {
        let mut x = Tensor::<f64>::arange(4).reshape([2, 2]);
        let outside = Tensor::from([0i64, 2]);
        assert!(x.try_index_add_(0, &outside, Tensor::ones([2, 2]), 1.0).is_err());
        assert!(x.try_index_copy_(0, &outside, Tensor::ones([2, 2])).is_err());
        assert!(x.try_index_fill_(0, &outside, 1.0).is_err());
        assert!(x.try_scatter_add_(1, &Tensor::from([[0i64, 2]]), Tensor::ones([1, 2])).is_err());
        assert!(x.try_index_put_(&index_items![&outside], Tensor::ones([2, 2]), true).is_err());
        assert_eq!(x, Tensor::arange(4).reshape([2, 2]));
    }

    #[test]
    fn an_expanded_left_side_is_refused_but_by_index_put() {
        let mut x = Tensor::<f64>::zeros([1]).expand([3]);
        let index = Tensor::from([0i64]);
        assert!(x.try_index_add_(0, &index, Tensor::ones([1]), 1.0).is_err());
        assert!(x.try_index_set_(&index_items![0], 1.0).is_err());
        x.index_put_(&index_items![&index], Tensor::ones([1]), false);
        assert_eq!(x.to_vec(), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn the_mask_may_not_make_the_left_side_grow() {
        let mut x = Tensor::<f64>::zeros([1, 3]);
        let error = x.try_masked_scatter_(&Tensor::full([2, 3], true), Tensor::ones([6])).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [1, 3] doesn't match the broadcast shape [2, 3]");
    }

    #[test]
    fn errors_name_the_operation_in_place() {
        let (mut x, y) = (Tensor::<f64>::zeros([2, 3]), Tensor::ones([4]));
        let first = Tensor::from([0i64]);
        let errors = [
            ("index_put_", x.try_index_put_(&index_items![&first], &y, false)),
            ("index_set_", x.try_index_set_(&index_items![&first], &y)),
            ("index_set_", x.try_index_set_(&index_items![0], &y)),
            ("masked_scatter_", x.try_masked_scatter_(&Tensor::full([2, 3], true), &y)),
            ("masked_fill_", x.try_masked_fill_(Tensor::full([2, 3], true), &y)),
        ];
        for (name, error) in errors {
            let site = error.unwrap_err().site();
            assert_eq!((site.operation, site.location.file()), (name, file!()));
        }
    }
}
