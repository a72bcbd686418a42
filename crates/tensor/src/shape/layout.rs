//! The layout of a tensor's elements in its buffer (shape, strides and offset), and the views that need no copy.
//!
//! A view is a new layout over the same buffer. Strides count elements; they may be 0 (expanded) or negative (flipped). A function that
//! returns an `Option` returns `None` if its arguments do not fit, or if a view would need a copy. Then its caller, which knows the
//! operation, writes the error message. The other functions expect valid arguments.

use smallvec::{SmallVec, smallvec};

use crate::Shape;
use crate::shape::broadcast::expands;
use crate::shape::shape::{INLINE_RANK, copy_of, list_of};

/// The strides of a layout in elements, one for each dimension.
pub type Strides = SmallVec<[isize; INLINE_RANK]>;

/// The shape and strides of a tensor, and the offset of its first element in the buffer. The strides and the offset count elements.
#[derive(Debug, Eq)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        Layout { shape: self.shape.clone(), strides: copy_of(&self.strides), offset: self.offset }
    }
}

impl PartialEq for Layout {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let same = self.offset == other.offset && self.shape == other.shape;
        same && self.strides.iter().zip(&other.strides).all(|(x, y)| x == y)
    }
}

/// Sorts a short list by descending key. Items with equal keys keep their order. The standard library's sort is optimized for long lists.
/// Its code is compiled for each type and key, which takes long.
pub(crate) fn sort_few<L>(items: &mut [L], key: impl Fn(&L) -> usize) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && key(&items[place - 1]) < key(&items[place]) {
            items.swap(place - 1, place);
            place -= 1;
        }
    }
}

impl Layout {
    /// Returns the row-major layout of `shape`, which starts at position 0 of the buffer.
    #[inline]
    pub fn contiguous(shape: Shape) -> Self {
        let strides = shape.row_major_strides();
        Layout { shape, strides, offset: 0 }
    }

    /// Returns a layout with the given strides and offset. Returns `None` if the lengths of `shape` and `strides` differ, if an element
    /// would be outside a buffer of `buffer_len` elements, or if the number of elements overflows. An empty layout only needs an offset of
    /// at most `buffer_len`.
    pub fn strided(shape: Shape, strides: &[isize], offset: usize, buffer_len: usize) -> Option<Self> {
        if shape.rank() != strides.len() {
            return None;
        }
        let layout = Layout { shape, strides: Strides::from_slice(strides), offset };
        if layout.shape.checked_numel()? == 0 {
            return (offset <= buffer_len).then_some(layout);
        }
        let (first, last) = layout.checked_extent()?;
        (first >= 0 && (last as usize) < buffer_len).then_some(layout)
    }

    /// Returns the layout with the same shape and strides whose first element is at position `offset`. The caller checks that all elements
    /// are in the buffer.
    #[inline]
    pub(crate) fn with_offset(&self, offset: usize) -> Self {
        Layout { offset, ..self.clone() }
    }

    /// Returns the sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the strides in elements: 0 for expanded dimensions, negative for flipped dimensions.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Returns the position of the first element in the buffer.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// Returns true if the elements are contiguous in row-major order. Strides of dimensions of size 1 do not matter. An empty layout is
    /// contiguous.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 {
                if stride != expected {
                    return self.shape.contains(&0);
                }
                expected = expected.saturating_mul(isize::try_from(size).unwrap_or(isize::MAX));
            }
        }
        true
    }

    /// Returns the dimensions, sorted by the absolute value of their strides, from the longest to the shortest.
    pub(crate) fn axes_by_stride(&self) -> SmallVec<[usize; INLINE_RANK]> {
        let mut axes: SmallVec<[usize; INLINE_RANK]> = (0..self.shape.rank()).collect();
        sort_few(&mut axes, |&axis| self.strides[axis].unsigned_abs());
        axes
    }

    /// Returns true if several elements share a position by PyTorch's rule for operations in place: a dimension of size above 1 has stride
    /// 0.
    pub fn has_internal_overlap(&self) -> bool {
        self.numel() > 0 && self.shape.iter().zip(&self.strides).any(|(&size, &stride)| size > 1 && stride == 0)
    }

    /// Returns true if the elements fill a range of the buffer without gaps or repetitions. The dimensions may be in any order.
    pub fn is_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        let mut expected = 1usize;
        for axis in self.axes_by_stride().into_iter().rev().filter(|&axis| self.shape[axis] != 1) {
            if self.strides[axis].unsigned_abs() != expected {
                return false;
            }
            expected = expected.saturating_mul(self.shape[axis]);
        }
        true
    }

    /// Returns true if the strides prove that no two elements share a position: each stride exceeds the extent of the dimensions with
    /// smaller strides. The result is true for every view of a contiguous tensor except expansions and overlapping windows. The result is
    /// false for some layouts whose elements interleave but do not share positions.
    pub fn is_injective(&self) -> bool {
        if self.is_contiguous() || self.numel() == 0 {
            return true;
        }
        let mut reach = 0usize;
        for axis in self.axes_by_stride().into_iter().rev().filter(|&axis| self.shape[axis] != 1) {
            let stride = self.strides[axis].unsigned_abs();
            if stride <= reach {
                return false;
            }
            reach = reach.saturating_add(stride.saturating_mul(self.shape[axis] - 1));
        }
        true
    }

    /// Returns the layout without repeated elements: dimensions of stride 0 get size 1.
    pub(crate) fn without_repeats(&self) -> Self {
        let mut layout = self.clone();
        for axis in 0..self.shape.rank() {
            if self.strides[axis] == 0 && self.shape[axis] > 1 {
                layout.shape[axis] = 1;
            }
        }
        layout
    }

    /// Returns the lowest and the highest position of the elements in the buffer. For an empty layout, these positions have no meaning, and
    /// the function may panic.
    pub fn extent(&self) -> (usize, usize) {
        let (first, last) = self.checked_extent().expect("a layout's positions are checked when it is made");
        (first as usize, last as usize)
    }

    fn checked_extent(&self) -> Option<(isize, isize)> {
        let mut first = isize::try_from(self.offset).ok()?;
        let mut last = first;
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = stride.checked_mul(isize::try_from(size.saturating_sub(1)).ok()?)?;
            if reach < 0 {
                first = first.checked_add(reach)?;
            } else {
                last = last.checked_add(reach)?;
            }
        }
        Some((first, last))
    }

    /// Returns the position in the buffer of the element at `index`. Returns `None` if the index is out of range or has another length than
    /// the shape.
    pub fn position(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.shape.rank() || index.iter().zip(self.shape.iter()).any(|(i, size)| i >= size) {
            return None;
        }
        let distance: isize = index.iter().zip(&self.strides).map(|(&i, &stride)| i as isize * stride).sum();
        Some((self.offset as isize + distance) as usize)
    }

    /// Returns the layout expanded to `shape`, with stride 0 for new and stretched dimensions. Returns `None` if the layout's shape does
    /// not expand to `shape`.
    pub fn expand(&self, shape: &Shape) -> Option<Self> {
        if !expands(&self.shape, shape) {
            return None;
        }
        let lead = shape.rank() - self.shape.rank();
        let mut strides: Strides = list_of(0, shape.rank());
        let own = self.shape.iter().zip(&self.strides);
        for ((new, &target), (&size, &stride)) in strides[lead..].iter_mut().zip(&shape[lead..]).zip(own) {
            if size == target {
                *new = stride;
            }
        }
        Some(Layout { shape: shape.clone(), strides, offset: self.offset })
    }

    /// Returns two layouts: one of the dimensions that are not in `axes`, and one of the dimensions in `axes`.
    pub(crate) fn split(&self, axes: &[usize]) -> (Self, Self) {
        (self.keep_axes(|axis| !axes.contains(&axis)), self.keep_axes(|axis| axes.contains(&axis)))
    }

    /// Returns the layout of the dimensions for which `keep` returns true. The other dimensions are removed: only their elements at index 0
    /// remain.
    pub(crate) fn keep_axes(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut layout = Layout { shape: Shape::scalar(), strides: Strides::new(), offset: self.offset };
        for axis in (0..self.shape.rank()).filter(|&axis| keep(axis)) {
            layout.shape.push(self.shape[axis]);
            layout.strides.push(self.strides[axis]);
        }
        layout
    }

    /// Returns the layout with its dimensions in the order `axes`, which must name each dimension once.
    pub fn permute(&self, axes: &[usize]) -> Self {
        Layout {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        }
    }

    /// Returns the layout whose [`permute`](Self::permute) by `axes` gives this layout.
    pub(crate) fn unpermute(&self, axes: &[usize]) -> Self {
        let mut layout = self.clone();
        for (place, &axis) in axes.iter().enumerate() {
            (layout.shape[axis], layout.strides[axis]) = (self.shape[place], self.strides[place]);
        }
        layout
    }

    /// Selects `len` elements `start, start + step, …` of dimension `axis`. The step may be negative.
    pub fn slice(&self, axis: usize, start: usize, len: usize, step: isize) -> Self {
        let mut layout = self.clone();
        layout.shape[axis] = len;
        // An empty layout needs no new offset, and a single element needs no new stride. Both stay unchanged, because the products could
        // overflow.
        if layout.numel() > 0 {
            layout.offset = (self.offset as isize + start as isize * self.strides[axis]) as usize;
        }
        if len > 1 {
            layout.strides[axis] = self.strides[axis].saturating_mul(step);
        }
        layout
    }

    /// Selects index `index` of dimension `axis`, and removes the dimension.
    pub fn select(&self, axis: usize, index: usize) -> Self {
        let mut layout = self.slice(axis, index, 1, 1);
        layout.shape.remove(axis);
        layout.strides.remove(axis);
        layout
    }

    /// Reverses the order of the elements along `axes`.
    pub fn flip(&self, axes: &[usize]) -> Self {
        let mut layout = self.clone();
        for &axis in axes {
            let size = self.shape[axis];
            if size > 0 {
                layout = layout.slice(axis, size - 1, size, -1);
            }
        }
        layout
    }

    /// Inserts a dimension of size 1 before position `axis`.
    pub fn unsqueeze(&self, axis: usize) -> Self {
        let mut layout = self.clone();
        let stride = match self.shape.get(axis) {
            Some(&size) => self.strides[axis].saturating_mul(isize::try_from(size).unwrap_or(isize::MAX)),
            None => 1,
        };
        layout.shape.insert(axis, 1);
        layout.strides.insert(axis, stride);
        layout
    }

    /// Removes dimension `axis`, which has size 1.
    pub fn squeeze(&self, axis: usize) -> Self {
        debug_assert_eq!(self.shape[axis], 1);
        self.select(axis, 0)
    }

    /// Selects a diagonal of the matrix with the row dimension `first` and the column dimension `second`. The diagonal becomes the last
    /// dimension. `offset` is its distance above the main diagonal, and negative below it.
    pub fn diagonal(&self, offset: isize, first: usize, second: usize) -> Self {
        let (rows, columns) = (self.shape[first], self.shape[second]);
        let below = offset.min(0).unsigned_abs();
        let above = offset.max(0) as usize;
        let len = rows.saturating_sub(below).min(columns.saturating_sub(above));
        let mut layout = self.clone();
        if len > 0 && self.numel() > 0 {
            let distance = below as isize * self.strides[first] + above as isize * self.strides[second];
            layout.offset = (self.offset as isize + distance) as usize;
        }
        let stride = self.strides[first].saturating_add(self.strides[second]);
        for axis in [first.max(second), first.min(second)] {
            layout.shape.remove(axis);
            layout.strides.remove(axis);
        }
        layout.shape.push(len);
        layout.strides.push(stride);
        layout
    }

    /// Replaces dimension `axis` by windows of `size` elements that begin `step` elements apart. The elements of a window become the last
    /// dimension.
    pub fn unfold(&self, axis: usize, size: usize, step: usize) -> Self {
        let mut layout = self.clone();
        layout.shape[axis] = (self.shape[axis] - size) / step + 1;
        // A dimension with a single window needs no stride, and the product of its stride and `step` could overflow.
        if layout.shape[axis] > 1 {
            let step = isize::try_from(step).unwrap_or(isize::MAX);
            layout.strides[axis] = self.strides[axis].saturating_mul(step);
        }
        layout.shape.push(size);
        layout.strides.push(self.strides[axis]);
        layout
    }

    /// Returns a layout of shape `shape` with the same elements in row-major order, or `None` if this needs a copy. The number of elements
    /// must stay the same.
    ///
    /// Merges adjacent contiguous dimensions and splits them again, like PyTorch's `computeStride`.
    pub fn reshape(&self, shape: &Shape) -> Option<Self> {
        debug_assert_eq!(self.numel(), shape.numel());
        if self.numel() == 0 {
            let strides = if self.shape == *shape { self.strides.clone() } else { shape.row_major_strides() };
            return Some(Layout { shape: shape.clone(), strides, offset: self.offset });
        }
        let mut strides: Strides = smallvec![1; shape.rank()];
        let mut filled = shape.rank();
        let mut run = 1usize;
        let mut run_stride = self.strides.last().copied().unwrap_or(1);
        for axis in (0..self.shape.rank()).rev() {
            run *= self.shape[axis];
            let breaks = match axis.checked_sub(1) {
                None => true,
                Some(outer) => self.shape[outer] != 1 && self.strides[outer] != run as isize * run_stride,
            };
            if !breaks {
                continue;
            }
            let mut covered = 1usize;
            while filled > 0 && (covered < run || shape[filled - 1] == 1) {
                strides[filled - 1] = covered as isize * run_stride;
                covered *= shape[filled - 1];
                filled -= 1;
            }
            if covered != run {
                return None;
            }
            if axis > 0 {
                run = 1;
                run_stride = self.strides[axis - 1];
            }
        }
        (filled == 0 || self.shape.rank() == 0).then(|| Layout { shape: shape.clone(), strides, offset: self.offset })
    }

    /// Returns true if PyTorch refuses to write through `self` while it reads `other`, a layout of the same buffer. PyTorch refuses if both
    /// layouts are dense, their ranges intersect, and the layouts differ.
    pub fn overlaps_partly(&self, other: &Layout) -> bool {
        if self.numel() == 0 || other.numel() == 0 || !self.is_dense() || !other.is_dense() {
            return false;
        }
        let (a, b) = (self.extent(), other.extent());
        if a == b {
            return !(self.shape == other.shape && self.strides == other.strides);
        }
        a.0 <= b.1 && b.0 <= a.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expanding_gives_stride_zero() {
        let layout = Layout::contiguous(Shape::from([3, 1])).expand(&Shape::from([2, 3, 4])).unwrap();
        assert_eq!(layout.strides(), &[0, 1, 0]);
        assert!(layout.has_internal_overlap());
    }

    #[test]
    fn reshape_without_a_copy_where_strides_allow() {
        let base = Layout::contiguous(Shape::from([4, 6]));
        assert_eq!(base.reshape(&Shape::from([2, 2, 3, 2])).unwrap().strides(), &[12, 6, 2, 1]);
        let columns = base.permute(&[1, 0]);
        assert!(columns.reshape(&Shape::from([24])).is_none());
        assert_eq!(columns.reshape(&Shape::from([2, 3, 4])).unwrap().strides(), &[3, 1, 6]);
        let window = base.slice(1, 0, 3, 2);
        assert_eq!(window.reshape(&Shape::from([12])).unwrap().strides(), &[2]);
        assert_eq!(Layout::contiguous(Shape::scalar()).reshape(&Shape::from([1, 1])).unwrap().strides(), &[1, 1]);
    }

    #[test]
    fn a_flipped_layout_starts_at_the_end() {
        let layout = Layout::contiguous(Shape::from([3])).flip(&[0]);
        assert_eq!((layout.offset(), layout.strides()), (2, &[-1isize][..]));
        assert_eq!(layout.extent(), (0, 2));
    }

    #[test]
    fn layouts_outside_the_buffer_are_refused() {
        assert!(Layout::strided(Shape::from([2, 2]), &[2, 1], 1, 4).is_none());
        assert!(Layout::strided(Shape::from([2, 2]), &[2, 1], 0, 4).is_some());
        assert!(Layout::strided(Shape::from([2]), &[-1], 0, 4).is_none());
        assert!(Layout::strided(Shape::from([usize::MAX]), &[isize::MAX], 0, 4).is_none());
        assert!(Layout::strided(Shape::from([usize::MAX]), &[0], 0, 4).is_none());
    }

    #[test]
    fn views_without_elements_do_not_overflow() {
        let huge = 1usize << 62;
        let layout = Layout::contiguous(Shape::from([3, huge, huge, 0]));
        let views = [
            layout.select(0, 2),
            layout.slice(1, huge - 1, 1, isize::MAX),
            layout.slice(0, 0, 3, -1),
            layout.flip(&[0, 1, 2, 3]),
            layout.diagonal(-2, 0, 1),
            layout.unfold(1, 2, huge),
            layout.unsqueeze(1),
        ];
        for view in views {
            assert!(view.numel() == 0 && view.is_contiguous() && view.is_injective(), "{view:?}");
        }
        let huge = Layout::contiguous(Shape::scalar()).expand(&Shape::from([huge, huge])).unwrap();
        assert!(!huge.is_contiguous() && !huge.is_dense() && !huge.is_injective());
    }

    #[test]
    fn shared_positions_are_recognised() {
        let base = Layout::contiguous(Shape::from([4, 6]));
        let table = [
            (base.clone(), true),
            (base.permute(&[1, 0]).flip(&[0]), true),
            (base.slice(1, 1, 3, 2), true),
            (base.diagonal(1, 0, 1), true),
            (base.unfold(1, 3, 3), true),
            (base.unfold(1, 3, 2), false),
            (base.unsqueeze(0).expand(&Shape::from([2, 4, 6])).unwrap(), false),
            (base.slice(0, 0, 0, 1).unsqueeze(0).expand(&Shape::from([2, 0, 6])).unwrap(), true),
        ];
        for (layout, injective) in table {
            assert_eq!(layout.is_injective(), injective, "{layout:?}");
        }
    }

    #[test]
    fn diagonals_and_windows() {
        let square = Layout::contiguous(Shape::from([3, 4]));
        let diagonal = square.diagonal(1, 0, 1);
        assert_eq!((diagonal.shape().sizes(), diagonal.strides(), diagonal.offset()), (&[3][..], &[5isize][..], 1));
        let windows = Layout::contiguous(Shape::from([7])).unfold(0, 3, 2);
        assert_eq!((windows.shape().sizes(), windows.strides()), (&[3, 3][..], &[2isize, 1][..]));
    }

    /// Returns the buffer positions of the elements in row-major order, computed by the definition of strides.
    fn positions(layout: &Layout) -> Vec<usize> {
        let mut all = vec![layout.offset() as isize];
        for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
            all = all.iter().flat_map(|&first| (0..size as isize).map(move |i| first + i * stride)).collect();
        }
        all.into_iter().map(|position| position as usize).collect()
    }

    /// Returns every index of a shape in row-major order.
    fn indices(shape: &Shape) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for &size in shape.iter() {
            all = all.iter().flat_map(|index: &Vec<usize>| (0..size).map(|i| [&index[..], &[i]].concat())).collect();
        }
        all
    }

    /// Returns all layouts of rank 0 to 3 with offset 11 that fit into a buffer of 40 elements. The size and the stride of each dimension
    /// are one of ten pairs.
    fn small_layouts() -> Vec<Layout> {
        let mut lists: Vec<Vec<(usize, isize)>> = vec![Vec::new()];
        let mut all = Vec::new();
        for rank in 0..=3 {
            for list in &lists {
                let (sizes, strides): (Vec<usize>, Vec<isize>) = list.iter().copied().unzip();
                all.extend(Layout::strided(Shape::from(&sizes[..]), &strides, 11, 40));
            }
            let dims = [(0, 2), (1, 0), (1, 5), (2, 0), (2, 1), (2, -3), (2, 4), (3, 1), (3, 2), (3, -1)];
            let longer = |list: &Vec<(usize, isize)>| dims.map(|dim| [&list[..], &[dim]].concat());
            lists = if rank < 3 { lists.iter().flat_map(longer).collect() } else { Vec::new() };
        }
        all
    }

    /// Returns the buffer positions of the elements in ascending order, each position once.
    fn sorted(layout: &Layout) -> Vec<usize> {
        let mut all = positions(layout);
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn every_small_layout_has_the_properties_of_its_positions() {
        let layouts = small_layouts();
        assert!(layouts.len() > 500);
        for layout in &layouts {
            let (all, distinct) = (positions(layout), sorted(layout));
            let is_short = all.is_empty();
            let fills = |sorted: &[usize]| sorted.windows(2).all(|pair| pair[1] == pair[0] + 1);
            assert_eq!(layout.numel(), all.len());
            assert_eq!(layout.is_contiguous(), is_short || fills(&all), "{layout:?}");
            let is_dense = is_short || (all.len() == distinct.len() && fills(&distinct));
            assert_eq!(layout.is_dense(), is_dense, "{layout:?}");
            // `is_injective` may return false although no elements share a position, but it never returns true wrongly.
            assert!(!layout.is_injective() || all.len() == distinct.len(), "{layout:?}");
            assert!(layout.is_injective() || !is_dense, "{layout:?}");
            let repeats = |axis: usize| layout.strides()[axis] == 0 && layout.shape()[axis] > 1;
            let overlaps = !is_short && (0..layout.shape().rank()).any(repeats);
            assert_eq!(layout.has_internal_overlap(), overlaps, "{layout:?}");
            let once = layout.without_repeats();
            assert!((0..once.shape().rank()).all(|axis| once.shape()[axis] < 2 || once.strides()[axis] != 0));
            assert_eq!(sorted(&once), distinct, "{layout:?}");
            assert_eq!(once.shape() == layout.shape(), !(0..layout.shape().rank()).any(repeats), "{layout:?}");
            if let (Some(&first), Some(&last)) = (distinct.first(), distinct.last()) {
                assert_eq!(layout.extent(), (first, last), "{layout:?}");
                let lead = (first, &layout.axes_by_stride());
                assert!(lead.1.windows(2).all(|pair| {
                    let stride = |axis: usize| layout.strides()[axis].unsigned_abs();
                    stride(pair[0]) > stride(pair[1]) || (stride(pair[0]) == stride(pair[1]) && pair[0] < pair[1])
                }));
            }
            for (index, &position) in indices(layout.shape()).iter().zip(&all) {
                assert_eq!(layout.position(index), Some(position), "{layout:?} {index:?}");
            }
            assert_eq!(layout.position(layout.shape()).is_some(), layout.shape().rank() == 0);
            assert_eq!(layout.position(&vec![0; layout.shape().rank() + 1]), None);
        }
    }

    #[test]
    fn layouts_are_equal_if_all_their_parts_are() {
        let layout = |sizes: [usize; 2], strides: [isize; 2], offset| {
            Layout::strided(Shape::from(sizes), &strides, offset, 40).unwrap()
        };
        let base = layout([2, 3], [3, 1], 0);
        assert!(base == base.clone());
        for other in
            [layout([3, 2], [3, 1], 0), layout([2, 3], [4, 1], 0), layout([2, 3], [3, 2], 0), layout([2, 3], [3, 1], 1)]
        {
            assert!(base != other, "{other:?}");
        }
    }

    #[test]
    fn every_view_selects_the_elements_of_its_definition() {
        for layout in small_layouts() {
            let (shape, at) = (layout.shape().clone(), |index: &[usize]| layout.position(index).unwrap());
            let check = |view: Layout, source: &dyn Fn(&[usize]) -> Vec<usize>| {
                let expected: Vec<usize> = indices(view.shape()).iter().map(|index| at(&source(index))).collect();
                assert_eq!(positions(&view), expected, "{layout:?} {view:?}");
            };
            for axis in 0..shape.rank() {
                let size = shape[axis];
                let with = |index: &[usize], value: usize| {
                    let mut index = index.to_vec();
                    index[axis] = value;
                    index
                };
                check(layout.flip(&[axis]), &|index| with(index, size - 1 - index[axis]));
                check(layout.unsqueeze(axis), &|index| [&index[..axis], &index[axis + 1..]].concat());
                for index in 0..size {
                    check(layout.select(axis, index), &|rest| [&rest[..axis], &[index], &rest[axis..]].concat());
                    let len = size - index;
                    check(layout.slice(axis, index, len, 1), &|place| with(place, index + place[axis]));
                    let steps = len.div_ceil(2);
                    check(layout.slice(axis, index, steps, 2), &|place| with(place, index + 2 * place[axis]));
                    let down = layout.slice(axis, index, index + 1, -1);
                    check(down, &|place| with(place, index - place[axis]));
                    for step in 1..=size {
                        let windows = layout.unfold(axis, index + 1, step);
                        assert_eq!(windows.shape()[axis], (size - index - 1) / step + 1);
                        check(windows, &|place| {
                            let (&inner, outer) = place.split_last().unwrap();
                            with(outer, outer[axis] * step + inner)
                        });
                    }
                }
                for other in (0..shape.rank()).filter(|&other| other != axis) {
                    for offset in -3..=3isize {
                        let diagonal = layout.diagonal(offset, axis, other);
                        let fits = |i: isize| (0..shape[axis] as isize).contains(&i);
                        let len = (0..shape[other] as isize).filter(|&column| fits(column - offset)).count();
                        assert_eq!(diagonal.shape()[shape.rank() - 2], len, "{layout:?} {offset}");
                        check(diagonal, &|place| {
                            let (&number, outer) = place.split_last().unwrap();
                            let mut index = vec![0; shape.rank()];
                            let rest = (0..shape.rank()).filter(|&place| place != axis && place != other);
                            rest.zip(outer).for_each(|(place, &i)| index[place] = i);
                            index[axis] = number + offset.min(0).unsigned_abs();
                            index[other] = number + offset.max(0) as usize;
                            index
                        });
                    }
                }
            }
        }
    }

    #[test]
    fn a_reshape_keeps_the_order_or_needs_a_copy() {
        let shapes = [
            &[][..],
            &[1],
            &[2],
            &[3],
            &[4],
            &[6],
            &[12],
            &[1, 2],
            &[2, 1],
            &[2, 2],
            &[2, 3],
            &[3, 2],
            &[1, 6, 1],
            &[2, 1, 3],
            &[4, 3],
            &[3, 4],
            &[3, 2, 2],
            &[2, 2, 3],
            &[18],
            &[9, 2],
            &[2, 9],
            &[27],
        ];
        for layout in small_layouts().into_iter().filter(|layout| layout.numel() > 0) {
            for shape in shapes.map(Shape::from).iter().filter(|shape| shape.numel() == layout.numel()) {
                match layout.reshape(shape) {
                    Some(view) => assert_eq!(positions(&view), positions(&layout), "{layout:?} {shape}"),
                    // If `reshape` returns `None`, no strides may give the same positions.
                    None => {
                        let all = positions(&layout);
                        let found = |strides: &[isize]| {
                            let view = Layout::strided(shape.clone(), strides, layout.offset(), 40);
                            view.is_some_and(|view| positions(&view) == all)
                        };
                        let step = |axis: usize| {
                            let inner: usize = shape[axis + 1..].iter().product();
                            if shape[axis] > 1 { all[inner] as isize - all[0] as isize } else { 0 }
                        };
                        let strides: Vec<isize> = (0..shape.rank()).map(step).collect();
                        assert!(!found(&strides), "{layout:?} {shape}");
                    }
                }
            }
        }
    }

    #[test]
    fn views_of_the_same_memory_overlap_partly_unless_they_are_equal() {
        let base = Layout::contiguous(Shape::from([4, 6]));
        let rows = |start, len| base.slice(0, start, len, 1);
        let table = [
            (base.clone(), base.clone(), false),
            (base.clone(), base.reshape(&Shape::from([6, 4])).unwrap(), true),
            (base.clone(), base.flip(&[0, 1]), true),
            (rows(0, 3), rows(1, 3), true),
            (rows(1, 3), rows(0, 3), true),
            (rows(0, 2), rows(1, 1), true),
            (rows(0, 2), rows(2, 2), false),
            (rows(2, 2), rows(0, 2), false),
            (rows(0, 3), rows(1, 0), false),
            (rows(1, 0), rows(0, 3), false),
            // Like PyTorch, `overlaps_partly` reports no overlap if a layout has gaps.
            (base.slice(1, 0, 3, 2), rows(0, 2), false),
            (rows(0, 2), base.slice(1, 0, 3, 2), false),
        ];
        for (x, y, expected) in table {
            assert_eq!(x.overlaps_partly(&y), expected, "{x:?} {y:?}");
        }
        let one = |offset| Layout::strided(Shape::from([2]), &[1], offset, 9).unwrap();
        assert!(one(3).overlaps_partly(&one(4)) && one(4).overlaps_partly(&one(3)));
        assert!(!one(3).overlaps_partly(&one(5)) && !one(5).overlaps_partly(&one(3)));
    }

    #[test]
    fn empty_views_keep_their_offset_and_strides() {
        let layout = Layout::strided(Shape::from([3, 3]), &[3, 1], 4, 13).unwrap();
        assert_eq!(layout.diagonal(5, 0, 1).offset(), 4);
        let empty = Layout::strided(Shape::from([0, 3]), &[7, 2], 0, 0).unwrap();
        assert_eq!(empty.reshape(&Shape::from([0, 3])).unwrap().strides(), &[7, 2]);
        assert_eq!(
            empty.reshape(&Shape::from([3, 0])).unwrap().strides(),
            &Shape::from([3, 0]).row_major_strides()[..]
        );
    }

    #[test]
    fn short_lists_are_sorted_stably() {
        let mut items = [(1, 'a'), (3, 'b'), (1, 'c'), (2, 'd'), (3, 'e'), (0, 'f')];
        sort_few(&mut items, |&(key, _)| key);
        assert_eq!(items, [(3, 'b'), (3, 'e'), (2, 'd'), (1, 'a'), (1, 'c'), (0, 'f')]);
    }

    #[test]
    fn dimensions_are_split_by_axes() {
        let layout = Layout::strided(Shape::from([2, 3, 4]), &[12, -4, 1], 9, 40).unwrap();
        let (kept, reduced) = layout.split(&[1]);
        assert_eq!((kept.shape().sizes(), kept.strides(), kept.offset()), (&[2, 4][..], &[12isize, 1][..], 9));
        assert_eq!((reduced.shape().sizes(), reduced.strides(), reduced.offset()), (&[3][..], &[-4isize][..], 9));
        assert_eq!(layout.permute(&[2, 0, 1]).strides(), &[1, 12, -4]);
        assert_eq!(layout.select(0, 0).unsqueeze(0).squeeze(0), layout.select(0, 0));
        assert!(Layout::strided(Shape::from([2]), &[1, 1], 0, 9).is_none());
        assert!(Layout::strided(Shape::from([0]), &[1], 9, 9).is_some());
        assert!(Layout::strided(Shape::from([0]), &[1], 10, 9).is_none());
        assert!(Layout::strided(Shape::from([2]), &[-1], 1, 9).is_some());
    }
}
