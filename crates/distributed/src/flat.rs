//! The vector that the ranks sum in a step. It consists of the gradients, the statistics that update buffers, and the loss.

use std::collections::HashMap;
use std::ops::Range;

use wengert_autograd::{BlendWeight, Buffer, BufferChange, Gradients, RecordedGradients};
use wengert_nn::{Leaf, Module};
use wengert_tensor::{Float, Shape, Tensor};

use crate::group::hash;
use crate::{Error, Result};

/// The ids and shapes of a model's parameters, and of its buffers of the model's element type or `i64`.
pub(crate) struct Leaves {
    pub(crate) parameters: Vec<(u64, Shape)>,
    buffers: Vec<(u64, Shape)>,
}

impl Leaves {
    pub(crate) fn from_model<T: Float>(model: &(impl Module<T> + ?Sized)) -> Self {
        let mut leaves = Leaves { parameters: Vec::new(), buffers: Vec::new() };
        for (_, leaf) in model.leaves() {
            match leaf {
                Leaf::Parameter(parameter) => {
                    leaves.parameters.push((parameter.id(), parameter.value.shape().clone()));
                }
                Leaf::Buffer(buffer) => {
                    let shape = buffer.shape().clone();
                    let buffer = buffer.as_any();
                    let statistic = buffer.downcast_ref::<Buffer<T>>().map(Buffer::id);
                    let id = statistic.or_else(|| buffer.downcast_ref::<Buffer<i64>>().map(Buffer::id));
                    leaves.buffers.extend(id.map(|id| (id, shape)));
                }
            }
        }
        leaves
    }

    /// Returns the index of each parameter in `parameters`, by the parameter's id.
    fn parameter_indices(&self) -> HashMap<u64, usize> {
        self.parameters.iter().enumerate().map(|(position, (id, _))| (*id, position)).collect()
    }

    /// Returns the parameters and buffers that occur in `gradients`, for a caller without a model. The parameters are in the order of
    /// their ids, and the buffers in the order of their first changes.
    pub(crate) fn from_gradients<T: Float>(gradients: &Gradients<T>) -> Self {
        let parameters = gradients.parameters().map(|(id, gradient)| (id, gradient.shape().clone())).collect();
        let mut buffers: Vec<(u64, Shape)> = Vec::new();
        for (id, change) in gradients.changes() {
            if buffers.iter().all(|(known, _)| known != id) {
                let shape = match change {
                    BufferChange::Blend { new, .. } => new.shape().clone(),
                    BufferChange::Count => Shape::scalar(),
                };
                buffers.push((*id, shape));
            }
        }
        Leaves { parameters, buffers }
    }
}

/// The layout of the vector that the ranks sum in a step. It refers to parameters and buffers by their index, because ids may differ
/// between ranks, but indices do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Layout {
    /// The index and the number of elements of each parameter that has a gradient.
    pub(crate) gradients: Vec<(usize, usize)>,
    /// The index of each changed buffer, and its change.
    changes: Vec<(usize, ChangeLayout)>,
    /// The number of values that each shard (part of the batch) contributes at each synchronization [point](crate::sync::Point), where the
    /// shards wait for each other.
    pub(crate) point_widths: Vec<usize>,
}

/// Gradients with the ids of their parameters, and changes with the ids of their buffers.
pub(crate) type Parts<T> = (Vec<(u64, Tensor<T>)>, Vec<(u64, BufferChange<Tensor<T>>)>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum ChangeLayout {
    Blend { weight: BlendWeight, size: usize },
    Count,
}

impl Layout {
    pub(crate) fn from_gradients<T: Float>(leaves: &Leaves, gradients: &Gradients<T>) -> Self {
        let changes = gradients.changes().iter().map(|(id, change)| (*id, blend_weight(change)));
        Layout::new(leaves, gradients.parameters().map(|(id, _)| id), changes)
    }

    /// Returns the layout of gradients that a shard has recorded but not yet computed. `point_widths` has the number of values that a shard
    /// contributes at each synchronization point.
    pub(crate) fn from_recorded<T: Float>(
        leaves: &Leaves,
        recorded: &RecordedGradients<'_, T>,
        point_widths: Vec<usize>,
    ) -> Self {
        let changes = recorded.changes().map(|(id, change)| (id, blend_weight(&change)));
        Layout { point_widths, ..Layout::new(leaves, recorded.parameters(), changes) }
    }

    fn new(
        leaves: &Leaves,
        parameters: impl Iterator<Item = u64>,
        changes: impl Iterator<Item = (u64, Option<BlendWeight>)>,
    ) -> Self {
        let indices = leaves.parameter_indices();
        let mut gradients: Vec<(usize, usize)> = parameters
            .filter_map(|id| {
                let position = *indices.get(&id)?;
                Some((position, leaves.parameters[position].1.numel()))
            })
            .collect();
        gradients.sort_unstable();
        let changes = changes.filter_map(|(id, weight)| {
            let position = leaves.buffers.iter().position(|(known, _)| *known == id)?;
            let size = leaves.buffers[position].1.numel();
            Some((position, weight.map_or(ChangeLayout::Count, |weight| ChangeLayout::Blend { weight, size })))
        });
        Layout { gradients, changes: changes.collect(), point_widths: Vec::new() }
    }

    /// Returns the range of each parameter's gradient in the vector that the ranks sum, by the parameter's id.
    pub(crate) fn gradient_ranges(&self, leaves: &Leaves) -> HashMap<u64, Range<usize>> {
        let mut at = 0;
        let range_of = |&(position, size): &(usize, usize)| {
            at += size;
            (leaves.parameters[position].0, at - size..at)
        };
        self.gradients.iter().map(range_of).collect()
    }

    /// Returns the number of elements of all gradients together. In the vector that the ranks sum, the gradients come first.
    pub(crate) fn gradient_length(&self) -> usize {
        self.gradients.iter().map(|(_, size)| size).sum()
    }

    /// Returns the number of elements of the vector that the ranks sum: gradients, statistics, and the loss.
    pub(crate) fn vector_length(&self) -> usize {
        let statistic =
            |(_, kind): &(usize, ChangeLayout)| if let ChangeLayout::Blend { size, .. } = kind { *size } else { 0 };
        self.gradient_length() + self.changes.iter().map(statistic).sum::<usize>() + 1
    }

    /// Returns an error if `other`, the layout of the shard with index `shard`, differs from this layout of an earlier shard.
    pub(crate) fn check_equal(&self, other: &Layout, shard: usize) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let [expected, got] = [self, other].map(Layout::description);
        Err(Error::ShardsDiffer { shard, expected, got })
    }

    /// Returns the layout as text, for messages and for the comparison between ranks.
    pub(crate) fn description(&self) -> String {
        format!(
            "{} gradients of {} elements and {} changes of buffers (layout {:016x})",
            self.gradients.len(),
            self.gradient_length(),
            self.changes.len(),
            hash([self.to_words().iter().map(|word| word.to_le_bytes()).collect::<Vec<_>>().as_flattened()])
        )
    }

    pub(crate) fn to_words(&self) -> Vec<i64> {
        let mut words = vec![self.point_widths.len() as i64];
        words.extend(self.point_widths.iter().map(|&width| width as i64));
        words.push(self.gradients.len() as i64);
        words.extend(self.gradients.iter().flat_map(|&(position, size)| [position as i64, size as i64]));
        for &(position, kind) in &self.changes {
            let (kind, weight, size) = match kind {
                ChangeLayout::Blend { weight: BlendWeight::Fixed(weight), size } => (0, weight.to_bits() as i64, size),
                ChangeLayout::Blend { weight: BlendWeight::CumulativeAverage(number), size } => {
                    (1, number as i64, size)
                }
                ChangeLayout::Count => (2, 0, 0),
            };
            words.extend([position as i64, kind, weight, size as i64]);
        }
        words
    }

    pub(crate) fn from_words(words: &[i64]) -> Self {
        let mut layout = Layout::default();
        let Some((point_widths, words)) =
            words.split_first().and_then(|(&count, words)| words.split_at_checked(count as usize))
        else {
            return layout;
        };
        layout.point_widths.extend(point_widths.iter().map(|&width| width as usize));
        let Some((&count, words)) = words.split_first() else {
            return layout;
        };
        let (gradients, changes) = words.split_at((2 * count as usize).min(words.len()));
        layout.gradients.extend(gradients.as_chunks().0.iter().map(|&[at, size]| (at as usize, size as usize)));
        layout.changes.extend(changes.as_chunks().0.iter().map(|&[at, kind, weight, size]| {
            let size = size as usize;
            let kind = match kind {
                0 => ChangeLayout::Blend { weight: BlendWeight::Fixed(f64::from_bits(weight as u64)), size },
                1 => ChangeLayout::Blend { weight: BlendWeight::CumulativeAverage(weight as u64), size },
                _ => ChangeLayout::Count,
            };
            (at as usize, kind)
        }));
        layout
    }

    /// Returns the vector of one shard (a part of the batch): its gradients, statistics and loss. Every element is multiplied by `weight`.
    pub(crate) fn flatten<T: Float>(&self, leaves: &Leaves, loss: T, gradients: &Gradients<T>, weight: T) -> Vec<T> {
        let mut flat = Vec::with_capacity(self.vector_length());
        gradients_by_index(leaves, gradients).iter().for_each(|(_, gradient)| push_scaled(&mut flat, gradient, weight));
        flat.extend(self.statistics_and_loss(leaves, loss, gradients, weight));
        flat
    }

    /// Returns the part of a shard's vector after the gradients: the statistics, and the loss. Every element is multiplied by `weight`.
    pub(crate) fn statistics_and_loss<T: Float>(
        &self,
        leaves: &Leaves,
        loss: T,
        gradients: &Gradients<T>,
        weight: T,
    ) -> Vec<T> {
        let mut tail = Vec::new();
        for (id, change) in gradients.changes() {
            if let BufferChange::Blend { new, .. } = change
                && leaves.buffers.iter().any(|(known, _)| known == id)
            {
                push_scaled(&mut tail, new, weight);
            }
        }
        tail.push(loss * weight);
        tail
    }

    /// Returns the gradients and the changes of buffers that the summed vector `flat` contains. If `is_tail` is true, `flat` is only the part
    /// of the vector after the gradients.
    pub(crate) fn unflatten<T: Float>(&self, leaves: &Leaves, flat: &[T], is_tail: bool) -> Result<Gradients<T>> {
        let (parameters, changes) = self.parts(leaves, flat, is_tail)?;
        Ok(Gradients::from_parts(parameters, changes))
    }

    /// Returns the same as [`unflatten`](Self::unflatten), as two lists with the ids of parameters and buffers.
    pub(crate) fn parts<T: Float>(&self, leaves: &Leaves, flat: &[T], is_tail: bool) -> Result<Parts<T>> {
        let mut at = 0;
        let mut next_tensor = |shape: &Shape| {
            let elements = flat[at..at + shape.numel()].to_vec();
            at += shape.numel();
            Tensor::try_from_vec(elements, shape)
        };
        let mut parameters = Vec::with_capacity(self.gradients.len());
        for &(position, _) in self.gradients.iter().filter(|_| !is_tail) {
            let (id, shape) = &leaves.parameters[position];
            parameters.push((*id, next_tensor(shape)?));
        }
        let mut changes = Vec::with_capacity(self.changes.len());
        for &(position, kind) in &self.changes {
            let (id, shape) = &leaves.buffers[position];
            changes.push((
                *id,
                match kind {
                    ChangeLayout::Blend { weight, .. } => BufferChange::Blend { new: next_tensor(shape)?, weight },
                    ChangeLayout::Count => BufferChange::Count,
                },
            ));
        }
        Ok((parameters, changes))
    }
}

/// Appends the elements of a tensor, each multiplied by `weight`, to `flat`.
pub(crate) fn push_scaled<T: Float>(flat: &mut Vec<T>, tensor: &Tensor<T>, weight: T) {
    match tensor.as_slice() {
        Some(elements) => flat.extend(elements.iter().map(|&element| element * weight)),
        None => flat.extend(tensor.iter().map(|element| element * weight)),
    }
}

/// Returns the weight that a new statistic gets in its buffer (a running average), or `None` for a counter.
fn blend_weight<V>(change: &BufferChange<V>) -> Option<BlendWeight> {
    match change {
        BufferChange::Blend { weight, .. } => Some(*weight),
        BufferChange::Count => None,
    }
}

/// Returns the gradients of the model's parameters, each with the index of the parameter in `leaves`, in the order of
/// the indices.
fn gradients_by_index<'g, T: Float>(leaves: &Leaves, gradients: &'g Gradients<T>) -> Vec<(usize, &'g Tensor<T>)> {
    let indices = leaves.parameter_indices();
    let mut found: Vec<(usize, &Tensor<T>)> =
        gradients.parameters().filter_map(|(id, gradient)| Some((*indices.get(&id)?, gradient))).collect();
    found.sort_unstable_by_key(|(position, _)| *position);
    found
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;
    use wengert_nn::{BatchNorm1d, Generator, Layer, Linear, Sequential, update_buffers};
    use wengert_tensor::ops::{Arithmetic as _, Reductions as _};

    use super::*;

    #[test]
    fn a_step_comes_back_from_its_vector() {
        let new = || {
            let generator = &mut Generator::new(0);
            let model: Sequential<f64> = Sequential::new()
                .add(Linear::new(3, 4, generator))
                .add(BatchNorm1d::new(4).momentum(None))
                .add(BatchNorm1d::new(4))
                .add(Linear::new(4, 2, generator));
            model
        };
        let (mut model, mut other) = (new(), new());
        model.freeze("0.weight");
        let generator = &mut Generator::new(1);
        let x = Tensor::randn([5, 3], generator);
        let (loss, gradients) =
            Tape::training(generator).value_and_gradients(|tape| model.forward(tape.constant(&x)).square().sum(..));
        let leaves = Leaves::from_model(&model);
        let layout = Layout::from_gradients(&leaves, &gradients);
        assert_eq!(Layout::from_words(&layout.to_words()), layout);
        let flat = layout.flatten(&leaves, loss, &gradients, 1.0);
        assert_eq!((flat.len(), flat[flat.len() - 1]), (layout.vector_length(), loss));
        let back = layout.unflatten(&leaves, &flat, false).unwrap();
        assert_eq!(back.len(), gradients.len());
        for parameter in model.parameters() {
            assert_eq!(back.get(parameter), gradients.get(parameter));
        }
        update_buffers(&mut model, &gradients);
        let moved = layout.unflatten(&Leaves::from_model(&other), &flat[layout.gradient_length()..], true).unwrap();
        update_buffers(&mut other, &moved);
        for ((path, one), (_, two)) in model.named_buffers().into_iter().zip(other.named_buffers()) {
            assert_eq!(one.to_bytes(), two.to_bytes(), "{path}");
        }
    }
}
