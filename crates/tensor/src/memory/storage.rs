//! Buffers that tensors share. Before a tensor writes to a buffer that another tensor also holds, the elements are copied to a new buffer.
//!
//! A buffer owns its memory, is a range of a larger allocation ([`MemoryRange`]), or refers to foreign memory. Foreign memory is an `ndarray`
//! array, which the buffer keeps alive, or a view of static memory. It is only read: even if no other tensor holds the buffer, other arrays
//! may read the same memory.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArcArray, ArrayView, ArrayViewD, Axis, Dimension, IxDyn, ShapeBuilder};

use crate::memory::available::AllocationError;
use crate::memory::pool;
use crate::memory::pool::PooledBuffer;
use crate::memory::reserve;
use crate::memory::scratch::Scratch;
use crate::{Layout, Scalar, Shape, Strides};

/// A shared buffer of elements. A clone refers to the same elements.
pub(crate) enum Storage<T> {
    /// A short buffer, in one allocation with its reference count. A second allocation would take longer than an operation on these few
    /// elements.
    Small(Arc<[T]>),
    Large(Arc<Buffer<T>>),
}

pub(crate) enum Buffer<T> {
    Own(Vec<T>),
    Pooled(PooledBuffer<T>),
    Foreign(Foreign<T>),
    Lent(Box<dyn AsRef<[T]> + Send + Sync>),
    Range(MemoryRange<T>),
}

/// A range of an allocation. Other ranges of the allocation belong to other buffers.
pub(crate) struct MemoryRange<T> {
    memory: Arc<SharedAllocation<T>>,
    range: Range<usize>,
    /// The buffers that were joined, if this range is a concatenation of them. Otherwise empty. While this `MemoryRange` exists, neither
    /// the joined buffers nor the range are writable.
    parts: Vec<Storage<T>>,
}

/// An allocation of memory that is read and written only through [`MemoryRange`]s.
struct SharedAllocation<T> {
    start: *mut T,
    /// The owner of the elements. It is not accessed while any [`MemoryRange`] of the elements exists.
    _memory: PooledBuffer<T>,
}

/// An allocation that hands out disjoint ranges as separate buffers, which can later be joined without a copy.
pub(crate) struct ConcatMemory<T> {
    memory: Arc<SharedAllocation<T>>,
    len: usize,
    /// The ranges that were handed out as buffers and are not empty, as a map from each range's start to its end.
    taken: BTreeMap<usize, usize>,
}

impl<T: Scalar> ConcatMemory<T> {
    /// Allocates `len` elements with unspecified values.
    pub(crate) fn new(len: usize) -> Result<Self, AllocationError> {
        let mut memory = reserve::scratch(len.max(1))?;
        let memory = Arc::new(SharedAllocation { start: memory.as_mut_ptr(), _memory: memory });
        Ok(ConcatMemory { memory, len, taken: BTreeMap::new() })
    }

    /// Returns `range` as a buffer, which is writable while it has a single holder. Returns `None` if the range reaches beyond the memory,
    /// descends, or overlaps a range that was handed out before.
    pub(crate) fn take(&mut self, range: Range<usize>) -> Option<Storage<T>> {
        let before = self.taken.range(..range.end).next_back();
        if range.start > range.end || range.end > self.len || before.is_some_and(|(_, &end)| end > range.start) {
            return None;
        }
        if !range.is_empty() {
            self.taken.insert(range.start, range.end);
        }
        let range = MemoryRange { memory: Arc::clone(&self.memory), range, parts: Vec::new() };
        Some(Storage::Large(Arc::new(Buffer::Range(range))))
    }
}

// SAFETY: the memory is owned and moves with this value. A shared reference to this value reads only the pointer `start`. The elements are
// borrowed through the ranges, which follow the borrow rules.
unsafe impl<T: Send + Sync> Send for SharedAllocation<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send + Sync> Sync for SharedAllocation<T> {}

/// Memory that this buffer shares with `ndarray` arrays. The `len` elements at `start` are part of a vector that the owner shares with
/// other arrays. The vector is initialised and stays at the same address until the last array is dropped. While the owner holds the vector,
/// the other arrays copy it before they write, so nothing writes to it.
pub(crate) struct Foreign<T> {
    start: *const T,
    len: usize,
    /// The array that contains the memory at `start`. It is dropped with the buffer.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: foreign memory is only read, through shared references to `T: Sync`. The owner is `Send`.
unsafe impl<T: Sync> Send for Foreign<T> {}
// SAFETY: as for `Send`, and the owner is `Sync`.
unsafe impl<T: Sync> Sync for Foreign<T> {}

impl<T: Scalar> Storage<T> {
    /// Returns a buffer that takes over the memory of the vector `data`.
    pub(crate) fn from_vec(data: Vec<T>) -> Self {
        Storage::Large(Arc::new(Buffer::Own(data)))
    }

    /// Returns a buffer of one element.
    pub(crate) fn from_value(value: T) -> Self {
        Storage::Small(Arc::new([value]))
    }

    /// Returns a buffer of `len` elements. `fill` gets elements with unspecified values and must write all of them. Returns an error if
    /// memory runs out, or if `fill` returns one.
    pub(crate) fn build<F: FillResult>(len: usize, fill: impl FnOnce(&mut [T]) -> F) -> Result<Self, AllocationError> {
        let mut buffer = NewBuffer::new(len)?;
        fill(buffer.elements()).into_result()?;
        Ok(buffer.into_storage())
    }

    /// Returns a buffer of `len` elements with unspecified values. The caller must write all of them.
    pub(crate) fn scratch(len: usize) -> Result<Self, AllocationError> {
        Self::build(len, |_| {})
    }

    /// Returns the elements and the layout of an `ndarray` array. The buffer takes over the array's memory if nothing else holds it, and
    /// shares it otherwise. Nothing is copied.
    pub(crate) fn from_arc_array<D: Dimension>(array: ArcArray<T, D>) -> (Self, Layout) {
        let (shape, strides) = (Shape::from(array.shape()), Strides::from_slice(array.strides()));
        if shape.numel() == 0 {
            return (Self::from_vec(Vec::new()), Layout::contiguous(shape));
        }
        let array = match array.into_dyn().try_into_owned_nocopy() {
            Ok(array) => {
                let (data, offset) = array.into_raw_vec_and_offset();
                let layout = checked_layout(shape, &strides, offset.unwrap_or_default(), data.len());
                return (Self::from_vec(data), layout);
            }
            Err(array) => array,
        };
        let (before, len) = offset_and_len(&shape, &strides);
        let start = array.as_ptr().wrapping_sub(before);
        let owner = Box::new(array);
        let storage = Storage::Large(Arc::new(Buffer::Foreign(Foreign { start, len, _owner: owner })));
        (storage, checked_layout(shape, &strides, before, len))
    }

    /// Returns a buffer that shares the elements of an `ndarray` view, and the view's layout. Returns `None` if the view has gaps, because
    /// another view of the same memory may write to the gaps. Also returns `None` for overlapping windows.
    pub(crate) fn from_static_view<D: Dimension>(view: ArrayView<'static, T, D>) -> Option<(Self, Layout)> {
        let (shape, strides) = (Shape::from(view.shape()), Strides::from_slice(view.strides()));
        if shape.numel() == 0 {
            return Some((Self::from_vec(Vec::new()), Layout::contiguous(shape)));
        }
        // Removes repetitions along dimensions of stride 0. Then the view is a slice if it has neither gaps nor overlapping windows.
        let mut distinct = view.into_dyn();
        for axis in (0..shape.rank()).filter(|&axis| strides[axis] == 0) {
            distinct.collapse_axis(Axis(axis), 0);
        }
        let data: &'static [T] = distinct.to_slice_memory_order()?;
        let (before, len) = offset_and_len(&shape, &strides);
        let layout = checked_layout(shape, &strides, before, len);
        Some((Storage::Large(Arc::new(Buffer::Lent(Box::new(data)))), layout))
    }

    /// Returns the elements of `layout` as an `ndarray` view, or `None` if `ndarray` cannot represent the layout. Nothing is copied.
    /// Panics if `layout` has an element outside the buffer.
    pub(crate) fn view(&self, layout: &Layout) -> Option<ArrayViewD<'_, T>> {
        let (data, shape) = (self.as_slice(), layout.shape());
        if layout.numel() == 0 {
            return ArrayViewD::from_shape(IxDyn(shape), &[]).ok();
        }
        checked_layout(shape.clone(), layout.strides(), layout.offset(), data.len());
        isize::try_from(layout.numel()).ok()?;
        let stride = |axis: usize| if shape[axis] == 1 { 0 } else { layout.strides()[axis] };
        let steps: Vec<usize> = (0..shape.rank()).map(|axis| stride(axis).unsigned_abs()).collect();
        // The view starts at the lowest element and has positive strides. Axes with negative strides are inverted below.
        let lowest = &data[layout.extent().0..];
        let mut view = ArrayViewD::from_shape(IxDyn(shape).strides(IxDyn(&steps)), lowest).ok()?;
        for axis in (0..shape.rank()).filter(|&axis| stride(axis) < 0) {
            view.invert_axis(Axis(axis));
        }
        Some(view)
    }

    /// Returns all elements of the buffer.
    pub(crate) fn as_slice(&self) -> &[T] {
        let buffer = match self {
            Storage::Small(data) => return data,
            Storage::Large(buffer) => &**buffer,
        };
        match buffer {
            Buffer::Own(data) => data,
            Buffer::Pooled(block) => block,
            Buffer::Lent(data) => (**data).as_ref(),
            // SAFETY: only `from_arc_array` makes a `Foreign`. Its `start` and `len` cover an array from the lowest to the highest element.
            // The array lives as long as `self` (see `Foreign`).
            Buffer::Foreign(foreign) => unsafe { std::slice::from_raw_parts(foreign.start, foreign.len) },
            // SAFETY: `take` checked that the range lies within the memory's initialised elements. The memory lives as long as `self`.
            // `take` hands out no element twice. Only the sole holder of a range writes to it, through a mutable borrow, so nobody writes
            // while the range is borrowed here. A concatenation holds each of its parts a second time, so no part is writable.
            Buffer::Range(MemoryRange { memory, range, .. }) => unsafe {
                std::slice::from_raw_parts(memory.start.add(range.start), range.len())
            },
        }
    }

    /// Joins the buffers `parts` into one buffer without a copy. The parts are not writable while this buffer exists. Returns `None` unless
    /// there are parts, [`ConcatMemory::take`] returned each of them, and they are adjacent, in this order, in one memory.
    pub(crate) fn join_ranges(parts: Vec<Self>) -> Option<Self> {
        let part = |storage: &Self| match storage {
            Storage::Large(buffer) => match &**buffer {
                Buffer::Range(MemoryRange { memory, range, parts }) if parts.is_empty() => {
                    Some((Arc::clone(memory), range.clone()))
                }
                _ => None,
            },
            Storage::Small(_) => None,
        };
        let (memory, mut range) = part(parts.first()?)?;
        for next in &parts[1..] {
            let (other, next) = part(next)?;
            if !Arc::ptr_eq(&memory, &other) || next.start != range.end {
                return None;
            }
            range.end = next.end;
        }
        Some(Storage::Large(Arc::new(Buffer::Range(MemoryRange { memory, range, parts }))))
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns the elements for writing. Returns `None` if another tensor holds the buffer, or if the memory is foreign (an `ndarray` array
    /// or static memory). Also returns `None` for a concatenation, because the joined buffers hold its memory too.
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let buffer = match self {
            Storage::Small(data) => return Arc::get_mut(data),
            Storage::Large(buffer) => Arc::get_mut(buffer)?,
        };
        match buffer {
            Buffer::Own(data) => Some(data),
            Buffer::Pooled(block) => Some(block),
            Buffer::Range(MemoryRange { memory, range, parts }) if parts.is_empty() => {
                let Range { start, end } = *range;
                // SAFETY: as in `as_slice`; this is the range's only holder, borrowed mutably.
                Some(unsafe { std::slice::from_raw_parts_mut(memory.start.add(start), end - start) })
            }
            Buffer::Foreign(_) | Buffer::Lent(_) | Buffer::Range(_) => None,
        }
    }

    /// Converts the buffer into a vector if no other tensor holds it, and if it is a vector or [`Small`](Storage::Small). Otherwise returns
    /// the buffer itself as the error.
    pub(crate) fn into_vec(self) -> Result<Vec<T>, Self> {
        let buffer = match self {
            Storage::Small(mut data) => {
                return match Arc::get_mut(&mut data) {
                    Some(data) => Ok(data.to_vec()),
                    None => Err(Storage::Small(data)),
                };
            }
            Storage::Large(buffer) => buffer,
        };
        match Arc::try_unwrap(buffer) {
            Ok(Buffer::Own(data)) => Ok(data),
            Ok(other) => Err(Storage::Large(Arc::new(other))),
            Err(shared) => Err(Storage::Large(shared)),
        }
    }

    pub(crate) fn is_same_buffer(&self, other: &Self) -> bool {
        match (self, other) {
            (Storage::Small(data), Storage::Small(other)) => Arc::ptr_eq(data, other),
            (Storage::Large(buffer), Storage::Large(other)) => Arc::ptr_eq(buffer, other),
            _ => false,
        }
    }
}

/// A new buffer. No tensor holds the buffer yet, so its elements can be written.
enum NewBuffer<T: Scalar> {
    Small(Arc<[T]>),
    Large(Scratch<T>),
}

impl<T: Scalar> NewBuffer<T> {
    /// Returns a buffer of `len` elements with unspecified values.
    fn new(len: usize) -> Result<Self, AllocationError> {
        if len.saturating_mul(size_of::<T>()) < pool::MIN_POOLED_BYTES {
            return Ok(NewBuffer::Small(Arc::from_iter(std::iter::repeat_n(T::ZERO, len))));
        }
        Scratch::new(len).map(NewBuffer::Large)
    }

    fn elements(&mut self) -> &mut [T] {
        match self {
            // SAFETY: the elements are initialised. `data` has been their only holder since `new`, because this type never clones it.
            // `Arc::get_mut` would check this with a slow locked instruction.
            NewBuffer::Small(data) => unsafe { &mut *Arc::as_ptr(data).cast_mut() },
            NewBuffer::Large(scratch) => scratch,
        }
    }

    fn into_storage(self) -> Storage<T> {
        match self {
            NewBuffer::Small(data) => Storage::Small(data),
            NewBuffer::Large(Scratch::Pooled(block)) => Storage::Large(Arc::new(Buffer::Pooled(block))),
            NewBuffer::Large(Scratch::Own(data)) => Storage::from_vec(data),
        }
    }
}

/// The type of the result of a function that fills a buffer: `()`, or a `Result` if the function may fail.
pub(crate) trait FillResult {
    fn into_result(self) -> Result<(), AllocationError>;
}

impl FillResult for () {
    fn into_result(self) -> Result<(), AllocationError> {
        Ok(())
    }
}

impl FillResult for Result<(), AllocationError> {
    fn into_result(self) -> Result<(), AllocationError> {
        self
    }
}

/// Returns the distance in memory from the lowest element of an array to its first element. Also returns the length of the range that the
/// elements span. The array must not be empty. The sums cannot overflow, because the array exists.
fn offset_and_len(shape: &Shape, strides: &[isize]) -> (usize, usize) {
    let reach = |forward: bool| -> usize {
        let axes = shape.iter().zip(strides).filter(|&(_, &stride)| (stride > 0) == forward);
        axes.map(|(&size, &stride)| (size - 1) * if size > 1 { stride.unsigned_abs() } else { 0 }).sum()
    };
    let (before, after) = (reach(false), reach(true));
    (before, before + after + 1)
}

/// Returns the layout of an existing array in a buffer of `len` elements. Panics if an element of the array is outside the buffer.
fn checked_layout(shape: Shape, strides: &[isize], offset: usize, len: usize) -> Layout {
    Layout::strided(shape, strides, offset, len).expect("the elements of an array lie in its memory")
}

impl<T> Clone for Storage<T> {
    fn clone(&self) -> Self {
        match self {
            Storage::Small(data) => Storage::Small(Arc::clone(data)),
            Storage::Large(buffer) => Storage::Large(Arc::clone(buffer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_buffer_is_not_writable() {
        let mut first = Storage::from_vec(vec![1.0, 2.0]);
        let second = first.clone();
        assert!(first.get_mut().is_none());
        drop(second);
        first.get_mut().unwrap()[0] = 5.0;
        assert_eq!(first.as_slice(), &[5.0, 2.0]);
    }

    #[test]
    fn a_foreign_buffer_is_never_writable() {
        let array = ArcArray::from(vec![1.0, 2.0]);
        let (mut storage, _) = Storage::from_arc_array(array.clone());
        // The storage is not writable while `array` shares the memory. It stays unwritable after `array` is dropped.
        assert_eq!(storage.as_slice().as_ptr(), array.as_ptr());
        assert!(storage.get_mut().is_none());
        drop(array);
        assert!(storage.get_mut().is_none());
        let storage = storage.into_vec().err().unwrap();
        assert_eq!(storage.as_slice(), &[1.0, 2.0]);
    }

    #[test]
    fn an_array_held_once_hands_its_memory_over() {
        let array = ArcArray::from(vec![1.0, 2.0]);
        let start = array.as_ptr();
        let (mut storage, _) = Storage::from_arc_array(array);
        assert_eq!(storage.get_mut().unwrap().as_ptr(), start);
    }

    #[test]
    fn a_foreign_buffer_keeps_its_memory() {
        let array = ArcArray::from(vec![1i64, 2, 3]);
        let (storage, _) = Storage::from_arc_array(array.clone());
        let second = storage.clone();
        drop((storage, array));
        assert_eq!(second.as_slice(), &[1, 2, 3]);
    }

    #[test]
    fn parts_are_written_apart_and_read_together() {
        let mut memory = ConcatMemory::<f64>::new(800).unwrap();
        let mut parts: Vec<Storage<f64>> = [0..300, 300..300, 300..800].map(|range| memory.take(range).unwrap()).into();
        for (number, part) in parts.iter_mut().enumerate() {
            assert_eq!(part.len(), [300, 0, 500][number]);
            part.get_mut().unwrap().fill(number as f64);
        }
        // `take` hands out no element twice, and no element outside of the memory.
        assert!(memory.take(300..300).is_some());
        for range in [0..1, 299..301, 300..500, 799..800, 0..800, 800..801] {
            assert!(memory.take(range).is_none());
        }
        let other = [ConcatMemory::new(300).unwrap().take(0..300).unwrap()];
        assert!(Storage::join_ranges(vec![parts[0].clone(), parts[2].clone()]).is_some());
        assert!(Storage::join_ranges(vec![parts[2].clone(), parts[0].clone()]).is_none());
        assert!(Storage::join_ranges(vec![parts[2].clone(), other[0].clone()]).is_none());
        assert!(Storage::join_ranges(vec![parts[0].clone(), Storage::from_vec(vec![1.0])]).is_none());
        assert!(Storage::join_ranges(Vec::<Storage<f64>>::new()).is_none());
        let mut all = Storage::join_ranges(parts.clone()).unwrap();
        assert!(Storage::join_ranges(vec![all.clone()]).is_none());
        assert!(all.as_slice().iter().enumerate().all(|(i, &x)| x == if i < 300 { 0.0 } else { 2.0 }));
        // `all` also holds each part, so no part is writable.
        let [mut first, ..] = <[_; 3]>::try_from(parts).ok().unwrap();
        assert!(first.get_mut().is_none() && all.get_mut().is_none());
        drop(all);
        first.get_mut().unwrap()[0] = 7.0;
        assert_eq!(first.into_vec().err().unwrap().as_slice()[..2], [7.0, 0.0]);
        assert!(ConcatMemory::<f64>::new(usize::MAX / 2).is_err());
    }

    #[test]
    #[should_panic(expected = "the elements of an array lie in its memory")]
    fn a_view_outside_the_buffer_is_refused() {
        Storage::from_vec(vec![1.0; 3]).view(&Layout::contiguous(Shape::from([4])));
    }

    #[test]
    fn empty_buffers_exist() {
        assert!(Storage::<f32>::from_vec(Vec::new()).as_slice().is_empty());
        assert_eq!(Storage::<i64>::build(0, |_| {}).unwrap().len(), 0);
    }

    #[test]
    fn buffers_are_the_same_if_they_share_memory() {
        let buffers = || [Storage::from_value(1.0), Storage::from_vec(vec![1.0; 3])];
        let (first, second) = (buffers(), buffers());
        for (i, x) in first.iter().enumerate() {
            for (j, y) in first.iter().enumerate() {
                assert_eq!(x.is_same_buffer(&y.clone()), i == j);
            }
            assert!(second.iter().all(|y| !x.is_same_buffer(y)));
        }
    }

    #[test]
    fn a_view_has_the_elements_of_its_layout() {
        let storage = Storage::from_vec((0..40).collect::<Vec<i64>>());
        type Row = (&'static [usize], &'static [isize], usize);
        let table: &[Row] = &[
            (&[], &[], 7),
            (&[3], &[2], 1),
            (&[3], &[-2], 9),
            (&[1], &[-30], 3),
            (&[2, 3], &[0, 4], 5),
            (&[2, 3], &[-12, 4], 20),
            (&[2, 1, 3], &[3, -7, -1], 11),
            (&[0, 3], &[3, 1], 40),
        ];
        for &(shape, strides, offset) in table {
            let layout = Layout::strided(Shape::from(shape), strides, offset, 40).unwrap();
            let view = storage.view(&layout).unwrap();
            assert_eq!((view.shape(), view.len()), (shape, layout.numel()));
            for (index, &value) in view.indexed_iter() {
                assert_eq!(layout.position(ndarray::Dimension::slice(&index)), Some(value as usize), "{layout:?}");
            }
        }
    }

    /// Checks that the elements of `layout` in `storage` are the elements of `view`.
    fn check_elements(storage: &Storage<i64>, layout: &Layout, view: ArrayViewD<'_, i64>) {
        assert_eq!((layout.shape().sizes(), layout.numel()), (view.shape(), view.len()));
        for (index, value) in view.indexed_iter() {
            let position = layout.position(ndarray::Dimension::slice(&index)).unwrap();
            assert_eq!(storage.as_slice()[position], *value, "{layout:?}");
        }
    }

    #[test]
    fn a_view_of_static_memory_is_shared_unless_it_has_gaps() {
        static DATA: [i64; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        let whole = ArrayView::from_shape(IxDyn(&[3, 4]), &DATA).unwrap();
        let column = ArrayView::from_shape(IxDyn(&[4]).strides(IxDyn(&[0])), &DATA[5..6]).unwrap();
        let (mut down, mut both) = (whole.clone(), whole.clone());
        down.invert_axis(Axis(0));
        both.invert_axis(Axis(0));
        both.invert_axis(Axis(1));
        let repeated = ArrayView::from_shape(IxDyn(&[2, 3]).strides(IxDyn(&[0, 1])), &DATA[2..5]).unwrap();
        for view in [whole.clone(), whole.clone().reversed_axes(), down, both, column, repeated] {
            let (mut storage, layout) = Storage::from_static_view(view.clone()).unwrap();
            check_elements(&storage, &layout, view.view());
            // The storage covers the view's elements, and it is read-only.
            let mut distinct: Vec<i64> = view.iter().copied().collect();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(storage.as_slice(), distinct);
            assert!(DATA.as_ptr_range().contains(&storage.as_slice().as_ptr()) && storage.get_mut().is_none());
        }
        let gaps = ArrayView::from_shape(IxDyn(&[3]).strides(IxDyn(&[2])), &DATA[..5]).unwrap();
        assert!(Storage::from_static_view(gaps).is_none());
        let empty = ArrayView::from_shape(IxDyn(&[3, 0]), &DATA[..0]).unwrap();
        let (storage, layout) = Storage::from_static_view(empty).unwrap();
        assert_eq!((storage.len(), layout.shape().sizes()), (0, &[3, 0][..]));
    }

    #[test]
    fn arrays_of_any_layout_share_their_elements() {
        let whole = ArcArray::from_shape_vec(IxDyn(&[3, 4]), (0..12).collect::<Vec<i64>>()).unwrap();
        let (mut down, mut column, mut stepped) = (whole.clone(), whole.clone(), whole.clone());
        down.invert_axis(Axis(0));
        down.invert_axis(Axis(1));
        column.collapse_axis(Axis(1), 2);
        stepped.slice_axis_inplace(Axis(1), ndarray::Slice::new(1, None, 2));
        for array in [whole.clone(), whole.clone().reversed_axes(), down, column, stepped] {
            let (shared, layout) = Storage::from_arc_array(array.clone());
            check_elements(&shared, &layout, array.view());
            assert!(shared.clone().get_mut().is_none());
            // If nothing else holds an array's memory, the storage takes this memory over without a copy.
            let alone = ArcArray::from(array.to_owned());
            let start = alone.as_ptr();
            let (owned, layout) = Storage::from_arc_array(alone);
            check_elements(&owned, &layout, array.view());
            assert_eq!(owned.as_slice()[layout.offset()..].as_ptr(), start);
        }
        let (storage, layout) = Storage::from_arc_array(ArcArray::<i64, _>::zeros(IxDyn(&[0, 5])));
        assert_eq!((storage.len(), layout.shape().sizes()), (0, &[0, 5][..]));
    }

    #[test]
    fn only_the_sole_holder_gets_the_vector() {
        for storage in [Storage::from_value(7i64), Storage::from_vec(vec![7]), Storage::from_vec(vec![1, 2, 3])] {
            let (expected, second) = (storage.as_slice().to_vec(), storage.clone());
            let first = storage.into_vec().err().unwrap();
            assert!(first.is_same_buffer(&second));
            drop(second);
            assert_eq!(first.into_vec().ok(), Some(expected));
        }
        let pooled = Storage::build(1 << 10, |out: &mut [i64]| out.fill(3)).unwrap();
        assert_eq!(pooled.as_slice(), [3; 1 << 10]);
        assert_eq!(Storage::<i64>::scratch(5).unwrap().len(), 5);
        assert!(Storage::<i64>::build(5, |_| Err(AllocationError)).is_err());
    }

    #[test]
    fn the_extent_covers_every_element_once() {
        let check = |shape: &[usize], strides: &[isize], expected: (usize, usize)| {
            assert_eq!(offset_and_len(&Shape::from(shape), strides), expected, "{shape:?} {strides:?}");
        };
        check(&[], &[], (0, 1));
        check(&[3], &[2], (0, 5));
        check(&[3], &[-2], (4, 5));
        check(&[2, 3], &[10, -2], (4, 15));
        check(&[5, 2], &[0, 1], (0, 2));
        check(&[1, 2], &[-9, 3], (0, 4));
    }
}
