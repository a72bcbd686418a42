//! Indexing with a list of items, as `x[1, :, index]` in Python: integers, slices, new dimensions, an ellipsis, index tensors,
//! masks.
//!
//! Without index tensors and masks the result is a view. An index tensor of rank 0 counts as an integer. Index tensors broadcast against each
//! other. If the dimensions with index tensors are adjacent, the common shape of the index tensors replaces these dimensions. Otherwise the
//! common shape comes first. This is PyTorch's rule. In NumPy an integer counts as an index tensor; here an integer makes a view. The item
//! after a mask of several dimensions applies to the dimension after these dimensions.

pub use crate::ops::index::item::IndexItem;

use wengert_macros::twins;

use crate::ops::index::positions::{all_positions, positions_in};
use crate::ops::index::resolve::{positions, resolve_items, take_indexed, whole_mask};
use crate::ops::{Result, TensorLike};
use crate::{Site, Tensor};

/// Indexing with a list of items.
#[twins(blanket)]
pub trait ItemIndexing: TensorLike {
    /// Returns the elements that `items` select: a view if there are no index tensors and no masks. Refuses too many items, two ellipses,
    /// steps that are not positive, and positions out of range. Also refuses masks of other shapes than the dimensions that they index, and
    /// index tensors that do not broadcast. PyTorch: `x[items]`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::<f64>::arange(24).reshape([2, 3, 4]);
    /// assert_eq!(x.index(&index_items![1, .., 1..3]).shape(), &[3, 2]);
    /// let rows = Tensor::from([[2i64, 0], [0, 2]]);
    /// assert_eq!(x.index(&index_items![.., &rows]).shape(), &[2, 2, 2, 4]);
    /// assert_eq!(x.index(&index_items![&x.gt(21.0)]).to_vec(), [22.0, 23.0]);
    /// ```
    #[doc(alias("getitem", "__getitem__"))]
    fn try_index(&self, items: &[IndexItem]) -> Result<Self> {
        let at = Site::here("index");
        if let Some(mask) = whole_mask(items, &self.shape()) {
            return self.apply_take(&positions_in(mask, at)?, at);
        }
        let (view, indices) = resolve_items(self, items, at)?;
        take_indexed(&view, indices, at)
    }
}

/// Returns true if indexing by `items` gives a view.
pub(crate) fn is_view(items: &[IndexItem]) -> bool {
    !items.iter().any(|item| match item {
        IndexItem::Positions(positions) => positions.rank() > 0,
        IndexItem::Mask(_) => true,
        _ => false,
    })
}

/// Returns the row-major positions, in `x`, of the elements that `items` select.
pub(crate) fn positions_of<A: TensorLike>(x: &A, items: &[IndexItem], at: Site) -> Result<Tensor<i64>, A::Error> {
    let shape = x.shape();
    if let Some(mask) = whole_mask(items, &shape) {
        return Ok(positions_in(mask, at)?);
    }
    let keeps_dimensions = |item: &IndexItem| match item {
        IndexItem::Positions(positions) => positions.rank() > 0,
        IndexItem::Mask(mask) => mask.rank() > 0,
        item => matches!(item, IndexItem::Ellipsis),
    };
    if items.iter().all(keeps_dimensions) && !is_view(items) {
        let (_, indices) = resolve_items(x, items, at)?;
        return Ok(positions(&shape, indices, at)?);
    }
    let (view, indices) = resolve_items(&all_positions(&shape, at)?, items, at)?;
    Ok(take_indexed(&view, indices, at)?)
}

#[cfg(test)]
mod tests {
    use crate::index_items;
    use crate::ops::IndexItem;
    use crate::prelude::*;

    fn cube() -> Tensor<i64> {
        Tensor::from_fn([2, 3, 4], |i| (100 * i[0] + 10 * i[1] + i[2]) as i64)
    }

    #[test]
    fn views_are_views() {
        let x = cube();
        let middle = IndexItem::Slice((Some(1), Some(-1), 1).into());
        let view = x.index(&[IndexItem::from(-1), IndexItem::NewAxis, IndexItem::Ellipsis, middle]);
        assert_eq!(view.shape(), &[1, 3, 2]);
        assert_eq!(view.to_vec(), [101, 102, 111, 112, 121, 122]);
        assert!(view.shares_storage(&x));
        assert_eq!(x.index(&index_items![&Tensor::scalar(1i64), 2, 3]).item(), 123);
        let last = x.shape()[2] - 1; // a usize
        assert_eq!(x.index(&index_items![1, 2, last]).item(), 123);
        assert_eq!(x.index(&index_items![0, (.., 2), 1..=2]).to_vec(), [1, 2, 21, 22]);
        assert_eq!(x.index(&index_items![1, (1.., 2usize), (..last, 2)]).to_vec(), [110, 112]);
    }

    #[test]
    fn an_ellipsis_stands_for_the_remaining_dimensions() {
        let x = cube();
        assert_eq!(x.index(&index_items![..., 0]), x.select(2, 0));
        assert_eq!(x.index(&index_items![0, ...]), x.select(0, 0));
        assert_eq!(x.index(&index_items![..., -1, 1..,]), x.select(1, -1).narrow(1, 1, 3));
        assert_eq!(x.index(&index_items![1, ..., 2, ..]).to_vec(), x.index(&index_items![1, 2]).to_vec());
        assert_eq!(x.index(&index_items![...]), x);
        assert_eq!(x.index(&index_items![1, .., ..., 3]).shape(), &[3]);
        let rows = Tensor::from([0i64, 2]);
        assert_eq!(x.index(&index_items![..., &rows, 0]), x.select(2, 0).index_select(1, &rows));
        let empty: [crate::ops::IndexItem; 0] = index_items![];
        assert_eq!(x.index(&empty), x);
        assert!(x.try_index(&index_items![..., 0, ...]).is_err());
    }

    #[test]
    fn adjacent_index_tensors_stay_in_place_and_others_come_first() {
        let x = cube();
        let (rows, columns) = (Tensor::from([[0i64], [2]]), Tensor::from([-1i64, 0, 0]));
        let block = x.index(&index_items![.., &rows, &columns]);
        assert_eq!(block.shape(), &[2, 2, 3]);
        assert_eq!(block.index(&index_items![1]).to_vec(), [103, 100, 100, 123, 120, 120]);
        let (outer, inner) = (Tensor::from([0i64, 1]), Tensor::from([2i64, 3]));
        let split = x.index(&index_items![&outer, .., &inner]);
        assert_eq!(split.shape(), &[2, 3]);
        assert_eq!(split.to_vec(), [2, 12, 22, 103, 113, 123]);
        // The integer is applied first and removes its dimension. The dimensions of the two index tensors are then adjacent.
        assert_eq!(x.index(&index_items![&outer, 0, &inner]).to_vec(), [2, 103]);
    }

    #[test]
    fn values_are_put_where_items_read() {
        let x = cube().cast::<f64>();
        let (rows, columns) = (Tensor::from([[0i64], [2]]), Tensor::from([-1i64, 0, 3]));
        let (mask, part) = (x.gt(101.0), Tensor::from([[true, false, true], [false, false, true]]));
        let (first, last) = (Tensor::from([1i64, 0, 1]), Tensor::from([2i64, 2, 3]));
        let negative = Tensor::from([-1i64, 0]);
        let lists = [
            index_items![.., &rows, &columns].to_vec(),
            index_items![&mask].to_vec(),
            index_items![&part].to_vec(),
            index_items![..., &last].to_vec(),
            index_items![&first, ..., &last].to_vec(),
            index_items![1, &first].to_vec(),
            index_items![&part, 1..3].to_vec(),
            index_items![&negative].to_vec(),
        ];
        for items in &lists {
            let (picked, set) = (x.index(items), x.index_set(items, -1.0));
            assert!(set.index(items).eq(-1.0).all(..).item());
            assert_eq!(set.ne(&x).count_nonzero(..).item(), picked.unique().0.numel() as i64);
            let values = &picked * 2.0;
            assert_eq!(x.index_set(items, &values).index(items), values);
            assert_eq!(x.index_put(items, &values, false), x.index_set(items, &values));
            assert_eq!(x.index_put(items, &values, true).sum(..).item(), (x.sum(..) + values.sum(..)).item());
        }
    }

    /// Without accumulation, the value of the last write wins. With accumulation, all values are added.
    #[test]
    fn slices_are_put_in_order() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let (items, values) =
            (index_items![&Tensor::from([1i64, -2, 1])], Tensor::from([[5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]));
        assert_eq!(x.index_put(&items, &values, false), Tensor::from([[7.0, 8.0], [9.0, 10.0]]));
        assert_eq!(x.index_put(&items, &values, true), Tensor::from([[8.0, 10.0], [17.0, 20.0]]));
        assert_eq!(x.index_put(&items, Tensor::from([[0.5, -1.0]]), true), Tensor::from([[1.5, 1.0], [4.0, 2.0]]));
        assert_eq!(x.index_set(&items, Tensor::scalar(0.5)), Tensor::full([2, 2], 0.5));
        assert_eq!(x.t().index_set(&index_items![&Tensor::from([1i64])], 0.5), Tensor::from([[1.0, 3.0], [0.5, 0.5]]));
        assert_eq!(x.index_put(&index_items![&Tensor::<i64>::zeros([0])], Tensor::zeros([2]), true), x);
        assert!(x.try_index_put(&index_items![&Tensor::from([2i64])], &values, true).is_err());
        assert!(x.try_index_put(&items, Tensor::ones([3]), true).is_err());
    }

    #[test]
    fn masks_select_over_as_many_dimensions_as_they_have() {
        let x = cube();
        let mask = Tensor::from([[true, false, false], [false, false, true]]);
        assert_eq!(x.index(&index_items![&mask, 1]).to_vec(), [1, 121]);
        assert_eq!(x.index(&index_items![&Tensor::scalar(true)]).shape(), &[1, 2, 3, 4]);
        assert_eq!(x.index(&index_items![&Tensor::scalar(false)]).shape(), &[0, 2, 3, 4]);
    }

    #[test]
    fn refusals_have_pytorchs_sentences() {
        let x = Tensor::<f64>::zeros([3, 3]);
        let sentence = |items: &[IndexItem]| x.try_index(items).unwrap_err().sentence();
        assert_eq!(sentence(&index_items![0, 0, 0]), "too many indices for tensor of dimension 2");
        assert_eq!(sentence(&index_items![3]), "index 3 is out of bounds for dimension 0 with size 3");
        assert_eq!(
            sentence(&index_items![&Tensor::from([0i64, 1]), &Tensor::from([0i64, 1, 2])]),
            "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"
        );
        assert_eq!(
            sentence(&index_items![&Tensor::from([true, true])]),
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 3] at index 0"
        );
    }
}
