//! The tensor type: a shared buffer, and a layout that says where the elements are in it.
//!
//! Tensors share buffers and copy on write, so changing one tensor never changes another. A view is a clone with another layout.

use std::borrow::Cow;
use std::ops::Index;

use wengert_macros::{precompiled, twins};

use crate::engine::elementwise;
use crate::kernel::elementwise::loops;
use crate::kernel::source::Source;
use crate::kernel::step::{self, UpdatePart};
use crate::memory::available::AllocationError;
use crate::memory::reserve::{self, addressable};
use crate::memory::storage::{FillResult, Storage};
use crate::thresholds::blocks::BLOCK;
use crate::thresholds::ops::MANY_TERMS;
use crate::{Element, Error, Layout, Shape, Site, Sizes, ensure};

/// An n-dimensional array of `f32`, `f64`, `i64`, `u8` or `bool`.
///
/// Cloning shares the elements. Writing in place copies the elements first if another tensor shares them.
///
/// ```
/// # use wengert_tensor as wengert;
/// use wengert::prelude::*;
///
/// let images = Tensor::<f32>::zeros([4, 3, 2, 2]);
/// let colour = Tensor::from([0.5, 0.25, 0.0f32]).reshape([3, 1, 1]);
/// let shifted = &images + &colour;
/// assert_eq!(shifted.shape(), &[4, 3, 2, 2]);
/// assert_eq!(shifted.get(&[2, 1, 0, 0]), Some(0.25));
/// ```
///
/// # Operations
///
/// Operations are methods of the traits of [`ops`](crate::ops), and functions there. `use wengert::prelude::*` imports the traits
/// (in the crate `wengert-tensor`, its own `prelude`). Examples without a `use` line have this import too. Operators: `+ - * / %`, unary
/// `-`, and the assigning operators; `& | ^ !` on masks. Each method `name` that can fail has a twin `try_name`, which returns the error
/// that `name` panics with. Operators have the twins of their methods: `try_add` for `+`.
///
#[doc = include_str!("operations.md")]
///
/// # Making, reading and converting
///
/// The methods below: [`zeros`](Self::zeros), [`full`](Self::full), [`arange`](Self::arange), [`linspace`](Self::linspace),
/// [`from_fn`](Self::from_fn), [`from_vec`](Self::from_vec), `Tensor::from` of an array, [`rand`](Self::rand), [`randn`](Self::randn);
/// [`item`](Self::item), [`to_vec`](Self::to_vec), [`iter`](Self::iter), [`get`](Self::get); [`cast`](Self::cast).
pub struct Tensor<T: Element = f32> {
    storage: Storage<T>,
    layout: Layout,
}

#[twins]
#[precompiled]
impl<T: Element> Tensor<T> {
    #[inline]
    pub(crate) fn from_parts(storage: Storage<T>, layout: Layout) -> Self {
        debug_assert!(layout.numel() == 0 || layout.extent().1 < storage.len());
        Tensor { storage, layout }
    }

    /// Returns a tensor like [`build`](Self::build), except that `fill` gets zeros.
    pub(crate) fn build_on_zeros<F: FillResult>(
        shape: &Shape,
        at: Site,
        mut fill: impl FnMut(&mut [T]) -> F,
    ) -> Result<Self, Error> {
        Tensor::build(shape, at, |out| {
            loops::fill(T::ZERO, out);
            fill(out)
        })
    }

    /// Returns a new contiguous tensor. `fill` gets the elements in row-major order, with unspecified values, and must write all of them.
    ///
    /// `fill` is called through a pointer, so that the allocation is compiled once for an element type and not for each `fill`.
    #[inline]
    pub(crate) fn build<F: FillResult>(
        shape: &Shape,
        at: Site,
        mut fill: impl FnMut(&mut [T]) -> F,
    ) -> Result<Self, Error> {
        let fill: &mut dyn FnMut(&mut [T]) -> Result<(), AllocationError> = &mut |out| fill(out).into_result();
        Self::build_inline(shape, at, fill)
    }

    /// Does the same as [`build`](Self::build), but calls `fill` directly. For results of a few elements, this saves a tenth of the time.
    pub(crate) fn build_inline<F: FillResult>(
        shape: &Shape,
        at: Site,
        fill: impl FnOnce(&mut [T]) -> F,
    ) -> Result<Self, Error> {
        let count = addressable::<T>(shape, at)?;
        let storage = Storage::build(count, fill).map_err(|_| Error::out_of_memory(shape, T::DTYPE, at))?;
        Ok(Tensor { storage, layout: Layout::contiguous(shape.clone()) })
    }

    /// Returns a new contiguous tensor, and the result of `fill`. `fill` gets the elements in row-major order, with unspecified values, and
    /// must write all of them. Crates with kernels of their own use this function.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the tensor, or `fill` returns an error.
    #[doc(hidden)]
    pub fn from_fill<R, E: From<Error>>(
        shape: Shape,
        at: Site,
        fill: impl FnOnce(&mut [T]) -> Result<R, E>,
    ) -> Result<(Self, R), E> {
        let (count, mut result) = (addressable::<T>(&shape, at)?, None);
        let storage = Storage::build(count, |out| result = Some(fill(out)));
        let storage = storage.map_err(|_| Error::out_of_memory(&shape, T::DTYPE, at))?;
        match result {
            Some(result) => Ok((Tensor { storage, layout: Layout::contiguous(shape) }, result?)),
            None => unreachable!("`build` calls `fill`"),
        }
    }

    /// Returns the buffer and the layout of the elements in it.
    #[inline]
    pub(crate) fn parts(&self) -> (&Storage<T>, &Layout) {
        (&self.storage, &self.layout)
    }

    /// Converts the tensor into its buffer and layout.
    #[inline]
    pub(crate) fn into_parts(self) -> (Storage<T>, Layout) {
        (self.storage, self.layout)
    }

    /// Returns the elements and the layout as a [`Source`], the type that kernels take.
    #[inline]
    pub(crate) fn source(&self) -> Source<'_, T> {
        Source { data: self.storage.as_slice(), layout: &self.layout }
    }

    /// Returns a tensor with the same buffer and another layout, which the caller has derived from this tensor's layout.
    #[inline]
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Tensor::from_parts(self.storage.clone(), layout)
    }

    /// Returns the elements without the repetitions along expanded dimensions.
    pub(crate) fn distinct(&self) -> Self {
        self.with_layout(self.layout.without_repeats())
    }

    /// Returns the elements before an expansion to at least [`MANY_TERMS`] elements: dimensions of stride 0 get size 1. Returns `None` if
    /// there are fewer elements, or if no dimension is expanded.
    #[doc(hidden)]
    #[inline]
    pub fn unexpanded(&self) -> Option<Self> {
        (self.numel() >= MANY_TERMS && self.layout.has_internal_overlap()).then(|| self.distinct())
    }

    /// Returns the buffer for writing through the layout. First copies the elements if the buffer is not [writable](Storage::get_mut), or
    /// if two elements may have the same position. The copy is contiguous.
    pub(crate) fn writable_data(&mut self, at: Site) -> Result<(&mut [T], &Layout), Error> {
        if !self.layout.is_injective() || self.storage.get_mut().is_none() {
            *self = self.contiguous_copy(at)?;
        }
        match self.storage.get_mut() {
            Some(data) => Ok((data, &self.layout)),
            None => unreachable!("nothing shares a fresh copy"),
        }
    }

    pub(crate) fn contiguous_copy(&self, at: Site) -> Result<Self, Error> {
        Tensor::build(self.shape(), at, |out| elementwise::copy(self.source(), out))
    }

    /// Returns the size of each dimension, outermost first.
    #[inline]
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// Returns the number of dimensions.
    #[inline]
    #[doc(alias("ndim", "dim", "ndimension"))]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Returns the number of elements.
    #[inline]
    #[doc(alias("len", "size", "nelement"))]
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// Returns shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the strides in elements: 0 for expanded dimensions, negative for flipped dimensions.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Returns true if the elements are adjacent in memory in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Returns true if both tensors share a buffer. A view shares the buffer of its operand.
    #[inline]
    pub fn shares_storage(&self, other: &Self) -> bool {
        self.storage.is_same_buffer(&other.storage)
    }

    /// Returns the element at `index`. Returns `None` if the index is out of range or has another length than the shape.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        self.layout.position(index).map(|position| self.storage.as_slice()[position])
    }

    /// Returns the elements in row-major order, or `None` if the tensor is not contiguous. [`to_vec`](Self::to_vec) supports any
    /// layout.
    #[inline]
    pub fn as_slice(&self) -> Option<&[T]> {
        let start = self.layout.offset();
        self.is_contiguous().then(|| match self.numel() {
            0 => &[],
            count => &self.storage.as_slice()[start..start + count],
        })
    }

    /// Returns the elements in row-major order for writing. Copies them first if another tensor, an `ndarray` array or a `static` shares
    /// them, or if the tensor is not contiguous.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let mut x = Tensor::from([1.0, 2.0]);
    /// let y = x.clone();
    /// x.make_mut()[0] = 5.0;
    /// assert_eq!((x.to_vec(), y.to_vec()), (vec![5.0, 2.0], vec![1.0, 2.0]));
    /// ```
    ///
    /// # Errors
    ///
    /// If memory cannot hold the copy.
    pub fn try_make_mut(&mut self) -> Result<&mut [T], Error> {
        self.elements_mut(Site::here("make_mut"))
    }

    /// Returns the elements in row-major order, for writing. Copies them first if the tensor shares its buffer or is not contiguous.
    pub(crate) fn elements_mut(&mut self, at: Site) -> Result<&mut [T], Error> {
        if !self.is_contiguous() {
            *self = self.contiguous_copy(at)?;
        }
        let count = self.numel();
        let (data, layout) = self.writable_data(at)?;
        let start = if count == 0 { 0 } else { layout.offset() };
        Ok(&mut data[start..start + count])
    }

    /// Updates this tensor and `states` in one pass. `f` maps an element of this tensor, of `input` and of each state to the new elements of
    /// this tensor and of the states. Refuses tensors of different shapes. Copies tensors that are not contiguous, and shared buffers that it
    /// writes to. Allocates no other buffers.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let (mut x, mut total) = (Tensor::from([1.0, 2.0]), Tensor::zeros([2]));
    /// x.update_with(&Tensor::from([0.5, 0.25]), [&mut total], |x, dx, [total]| (x - dx, [total + dx]));
    /// assert_eq!((x.to_vec(), total.to_vec()), (vec![0.5, 1.75], vec![0.5, 0.25]));
    /// ```
    pub fn try_update_with<const N: usize>(
        &mut self,
        input: &Self,
        states: [&mut Self; N],
        f: impl Fn(T, T, [T; N]) -> (T, [T; N]) + Sync,
    ) -> Result<(), Error> {
        self.update_parts(input, states, &|x, input, states| step::update_part(x, input, states, &f))
    }

    /// Checks that the shapes are equal, divides the elements into parts, and calls `part` for each part. See
    /// [`try_update_with`](Self::try_update_with).
    #[track_caller]
    fn update_parts<const N: usize>(
        &mut self,
        input: &Self,
        states: [&mut Self; N],
        part: &UpdatePart<'_, T, N>,
    ) -> Result<(), Error> {
        let at = Site::here("update_with");
        let shapes = std::iter::once(input.shape()).chain(states.iter().map(|state| state.shape()));
        for other in shapes {
            ensure!(other == self.shape(), at, "an update needs equal shapes, but got {} and {other}", self.shape());
        }
        let copy;
        let input = match input.as_slice() {
            Some(elements) => elements,
            None => {
                copy = input.elements(at)?;
                &copy
            }
        };
        let mut slices: [&mut [T]; N] = std::array::from_fn(|_| Default::default());
        for (slice, state) in slices.iter_mut().zip(states) {
            *slice = state.elements_mut(at)?;
        }
        step::update(self.elements_mut(at)?, input, slices, part);
        Ok(())
    }

    /// Returns a copy of the elements in row-major order.
    pub(crate) fn elements(&self, at: Site) -> Result<Vec<T>, Error> {
        let refused = |_| Error::out_of_memory(self.shape(), T::DTYPE, at);
        let mut out = reserve::zeroed(self.numel()).map_err(refused)?;
        elementwise::copy(self.source(), &mut out);
        Ok(out)
    }

    /// Returns the elements in row-major order. Copies them if the tensor is not contiguous.
    pub(crate) fn row_major_elements(&self, at: Site) -> Result<Cow<'_, [T]>, Error> {
        Ok(match self.as_slice() {
            Some(elements) => Cow::Borrowed(elements),
            None => Cow::Owned(self.elements(at)?),
        })
    }

    /// Returns an iterator over the elements in row-major order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + '_ {
        let (data, in_order) = (self.storage.as_slice(), self.as_slice());
        let space = crate::shape::iteration_space::IterationSpace::new(self.shape(), [&self.layout]);
        (0..self.numel()).map(move |index| match in_order {
            Some(elements) => elements[index],
            None => data[space.position(0, index)],
        })
    }

    /// Returns the only element of a tensor of any rank. PyTorch: `item`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::from([[4.5f64]]).item(), 4.5);
    /// ```
    ///
    /// # Errors
    ///
    /// If the number of elements is not 1.
    #[doc(alias("to_scalar"))]
    pub fn try_item(&self) -> Result<T, Error> {
        let at = Site::here("item");
        if self.numel() != 1 {
            let message = format!("a Tensor with {} elements cannot be converted to Scalar", self.numel());
            let hint = "`x.to_vec()` returns all elements; `x.sum(..)` and `x.mean(..)` reduce them to one";
            return Err(Error::argument(at, message).with_hint(hint));
        }
        Ok(self.storage.as_slice()[self.layout.offset()])
    }

    /// Returns a copy of the elements in row-major order. PyTorch: `flatten().tolist()`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let row = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!(row.expand([2, 3]).to_vec(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If memory cannot hold the elements: an expanded tensor may have far more elements than its buffer.
    #[doc(alias("tolist", "to_list"))]
    pub fn try_to_vec(&self) -> Result<Vec<T>, Error> {
        self.elements(Site::here("to_vec"))
    }

    /// Returns the same elements in row-major order under another shape, without a copy. Returns an error if the strides do not allow this,
    /// or if the sizes do not match the number of elements. One size may be -1, which is inferred.
    /// [`Views::reshape`](crate::ops::Views::reshape) copies if it must. PyTorch: `view`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::<f64>::ones([2, 3]);
    /// assert!(x.view([6]).shares_storage(&x));
    /// assert!(x.t().try_view([6]).is_err());
    /// ```
    pub fn try_view(&self, sizes: impl Into<Sizes>) -> Result<Self, Error> {
        let at = Site::here("view");
        let shape = sizes.into().resolve_reshape(self.shape(), at)?;
        let layout = self.layout.reshape(&shape).ok_or_else(|| {
            let message = "view size is not compatible with input tensor's size and stride (at least one dimension spans \
                           across two contiguous subspaces). Use .reshape(...) instead.";
            Error::Reshape { message: message.into(), at }
        })?;
        Ok(self.with_layout(layout))
    }

    /// Returns the tensor itself if it is contiguous, else a contiguous copy. PyTorch: `contiguous`.
    #[doc(alias("ascontiguousarray"))]
    pub fn try_contiguous(&self) -> Result<Self, Error> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.contiguous_copy(Site::here("contiguous")) }
    }

    /// Converts the elements to another type like Rust's `as`. From floats to integers, numbers round toward zero and saturate, and NaN
    /// becomes 0. To smaller integers, integers wrap. From `bool`, `true` becomes 1. To `bool`, every nonzero value becomes
    /// `true`. PyTorch: `to`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let pixels = Tensor::from([0u8, 128, 255]);
    /// assert_eq!(pixels.cast::<f32>().to_vec(), [0.0, 128.0, 255.0]);
    /// ```
    #[doc(alias("astype", "to", "type", "long"))]
    pub fn try_cast<U: Element>(&self) -> Result<Tensor<U>, Error> {
        self.cast_to(Site::here("cast"))
    }

    /// Converts the elements like [`cast`](Self::cast). `at` is the operation that the errors name.
    #[doc(hidden)]
    pub fn cast_to<U: Element>(&self, at: Site) -> Result<Tensor<U>, Error> {
        Tensor::build(self.shape(), at, |out| elementwise::convert(self.source(), out))
    }

    /// Returns a tensor with `f` applied to each element.
    pub fn try_map<U: Element>(&self, f: impl Fn(T) -> U + Sync) -> Result<Tensor<U>, Error> {
        Tensor::build(self.shape(), Site::here("map"), |out| elementwise::map(self.source(), out, &f))
    }
}

impl<T: Element> Clone for Tensor<T> {
    fn clone(&self) -> Self {
        Tensor { storage: self.storage.clone(), layout: self.layout.clone() }
    }
}

/// Tensors are equal if their shapes and all their elements are equal. A NaN equals nothing.
impl<T: Element> PartialEq for Tensor<T> {
    fn eq(&self, other: &Self) -> bool {
        if self.shape() != other.shape() {
            return false;
        }
        let (Some(x), Some(y)) = (self.as_slice(), other.as_slice()) else {
            return self.iter().zip(other.iter()).all(|(x, y)| x == y);
        };
        // The comparisons of a chunk have no early exit, so that the compiler vectorizes them.
        let equal = |(x, y): (&[T], &[T])| x.iter().zip(y).fold(true, |all, (x, y)| all & (x == y));
        x.chunks(BLOCK).zip(y.chunks(BLOCK)).all(equal)
    }
}

/// The bound on the type of an index in `tensor[index]`. No type implements it: an index expression can only return a reference to a value
/// in memory, but a row or a range of a tensor is a new tensor.
///
/// This trait exists for the compiler's error message.
#[diagnostic::on_unimplemented(
    message = "a tensor is not indexed by `[]`",
    label = "no index of a tensor",
    note = "a row is `x.select(0, 1)`, an element `x.get(&[1, 2])` or `x.select(0, 1).item()`, a range `x.slice(0, 1..3)`",
    note = "several of them at once: `x.index(&index_items![1, .., 2])`; along an index tensor: `x.index_select(0, &index)`"
)]
pub trait TensorIndex {
    #[doc(hidden)]
    fn element<T>(self) -> &'static T;
}

impl<T: Element, I: TensorIndex> Index<I> for Tensor<T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        index.element()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::thresholds::blocks::BLOCK;

    #[test]
    fn equality_of_all_elements() {
        for len in [BLOCK + 1, 2 * BLOCK] {
            let numbers: Vec<f32> = (0..len).map(|k| k as f32).collect();
            let with = |position: usize, number: f32| {
                let mut numbers = numbers.clone();
                numbers[position] = number;
                Tensor::from(numbers)
            };
            let x = Tensor::from(numbers.clone());
            assert!(x == Tensor::from(numbers.clone()) && x != with(len - 1, -1.0), "{len}");
            let nan = with(BLOCK, f32::NAN);
            let same = nan.clone();
            assert!(nan != same && nan != x, "{len}");
        }
        let x = Tensor::from([[1i64, 2, 3], [4, 5, 6]]);
        let transposed = Tensor::from([[1i64, 4], [2, 5], [3, 6]]).t();
        assert_eq!(x, transposed);
        assert_eq!(transposed, x);
        assert!(x != Tensor::from([[1i64, 4], [2, 5], [3, 7]]).t() && x != transposed.t());
    }
}
