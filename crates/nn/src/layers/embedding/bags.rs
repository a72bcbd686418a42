//! The bags of indices of an [`EmbeddingBag`](crate::EmbeddingBag).

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::ops::{Extremes as _, Indexing as _, Views as _, try_cat, try_where_};
use wengert_tensor::{Float, Tensor};

use crate::layers::forward::layer_error;

/// The indices of all bags, one bag after the other. Indices of the padding row are left out.
pub(super) struct Bags {
    pub(super) indices: Vec<i64>,
    /// The position of each index in the caller's tensor of indices.
    pub(super) positions: Vec<i64>,
    /// The number of the bag to which each index belongs.
    pub(super) bag_numbers: Vec<i64>,
    /// The number of indices of each bag.
    pub(super) counts: Vec<usize>,
}

impl Bags {
    /// Collects `indices` into bags. Without `offsets`, `indices` is `[bags, n]`, and each row is a bag. With
    /// `offsets`, `indices` is `[n]`, and the bags are adjacent ranges of the indices that begin at the offsets. Indices of the table's row `padding`
    /// are left out. Returns an error if the shapes do not fit, or the offsets do not ascend from 0 to at most the number of indices.
    #[track_caller]
    pub(super) fn new(
        indices: &Tensor<i64>,
        offsets: Option<&Tensor<i64>>,
        include_last_offset: bool,
        padding: Option<usize>,
    ) -> Result<Self, TapeError> {
        let values = indices.try_to_vec()?;
        let bounds = bounds(indices, offsets, include_last_offset)?;
        let bag_count = bounds.len() - 1;
        let mut bags =
            Bags { indices: Vec::new(), positions: Vec::new(), bag_numbers: Vec::new(), counts: vec![0; bag_count] };
        for (number, bounds) in bounds.windows(2).enumerate() {
            for position in bounds[0]..bounds[1] {
                let index = values[position as usize];
                if padding.is_none_or(|padding| index != padding as i64) {
                    bags.indices.push(index);
                    bags.positions.push(position);
                    bags.bag_numbers.push(number as i64);
                    bags.counts[number] += 1;
                }
            }
        }
        Ok(bags)
    }

    /// Returns the maximum of each column over the rows of each bag, or 0 for an empty bag. `rows` has the table's row for each index. To
    /// compute all bags at once, shorter bags are padded with rows of -∞.
    #[track_caller]
    pub(super) fn maxima<'t, T: Float>(&self, rows: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let (tape, width) = (rows.tape(), rows.shape()[1]);
        let (bags, longest) = (self.counts.len(), self.counts.iter().copied().max().unwrap_or(0).max(1));
        let lowest = tape.try_constant(&Tensor::try_full([1, width], T::from_f64(f64::NEG_INFINITY))?)?;
        let mut next = 0..;
        let slots = self.counts.iter().flat_map(|&count| {
            let of_bag: Vec<i64> = next.by_ref().take(count).collect();
            of_bag.into_iter().chain(vec![self.indices.len() as i64; longest - count])
        });
        let slots: Vec<i64> = slots.collect();
        let padded = try_cat(&[rows, lowest], 0)?.try_index_select(0, &Tensor::from(&slots[..]))?;
        let (largest, _) = padded.try_reshape([bags, longest, width])?.try_max(1)?;
        let filled = self.counts.iter().map(|&count| T::from_f64(if count > 0 { 1.0 } else { 0.0 })).collect();
        let filled = tape.try_constant(&Tensor::try_from_vec(filled, [bags, 1])?)?;
        try_where_(&filled, &largest, 0.0)
    }
}

/// Returns the position of the first index of each bag, and at the end the position after the last index of the last
/// bag. Returns an error for the reasons that [`Bags::new`] lists.
#[track_caller]
fn bounds(
    indices: &Tensor<i64>,
    offsets: Option<&Tensor<i64>>,
    include_last_offset: bool,
) -> Result<Vec<i64>, TapeError> {
    let (shape, total) = (indices.shape(), indices.numel() as i64);
    let mut bounds: Vec<i64> = match (shape.rank(), offsets) {
        (2, None) => (0..=shape[0]).map(|bag| (bag * shape[1]) as i64).collect(),
        (1, Some(offsets)) if offsets.rank() == 1 => offsets.try_to_vec()?,
        _ => {
            let message = "indices must be [bags, n] without offsets, or [n] with offsets [bags], but got";
            let message = format!("{message} indices {shape} and offsets {:?}", offsets.map(Tensor::shape));
            return Err(layer_error("embedding_bag", message));
        }
    };
    if offsets.is_some() && !include_last_offset {
        bounds.push(total);
    }
    if bounds.first() != Some(&0) || !bounds.is_sorted() || bounds.last().is_none_or(|&last| last > total) {
        let message = format!("offsets must ascend from 0 to at most {total}, but got {bounds:?}");
        return Err(layer_error("embedding_bag", message));
    }
    Ok(bounds)
}
