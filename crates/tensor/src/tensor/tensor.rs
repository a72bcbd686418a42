//! The value type: shared storage and a layout over it.
//!
//! Tensors share storage and copy on write: changing one never changes another. A view is a clone with another layout.

use std::ops::Index;

use wengert_macros::twins;

use crate::engine::elementwise;
use crate::kernel::strided::Source;
use crate::memory::reserve::{self, addressable};
use crate::memory::storage::{Filled, Storage};
use crate::shape::error::raise;
use crate::{DType, Element, Error, Float, Layout, Number, Shape, Site, Sizes};

/// An n-dimensional array of `f32`, `f64`, `i64`, `u8` or `bool`.
///
/// Cloning shares the elements; writing in place copies them first where another tensor holds them too.
///
/// ```
/// use wengert_tensor::prelude::*;
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
/// They are methods of the traits of [`ops`](crate::ops), which `use wengert::prelude::*` brings along (in this crate the
/// [`prelude`](crate::prelude)), and functions there. Operators: `+ - * / %`, unary `-`, and their assigning forms. Each `name` has a twin
/// `try_name`, which returns the error that `name` panics with.
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
impl<T: Element> Tensor<T> {
    pub(crate) fn from_parts(storage: Storage<T>, layout: Layout) -> Self {
        debug_assert!(layout.numel() == 0 || layout.extent().1 < storage.len());
        Tensor { storage, layout }
    }

    /// [`build`](Self::build), of elements that start as zeros.
    pub(crate) fn build_on_zeros<F: Filled>(
        shape: &Shape,
        at: Site,
        fill: impl FnOnce(&mut [T]) -> F,
    ) -> Result<Self, Error> {
        Tensor::build(shape, at, |out| {
            out.fill(T::ZERO);
            fill(out)
        })
    }

    /// A new contiguous tensor whose elements `fill` writes, all of them, in row-major order. Before, they are anything.
    pub(crate) fn build<F: Filled>(shape: &Shape, at: Site, fill: impl FnOnce(&mut [T]) -> F) -> Result<Self, Error> {
        let count = addressable::<T>(shape, at)?;
        let refused = |_| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
        let storage = Storage::build(count, fill).map_err(refused)?;
        Ok(Tensor { storage, layout: Layout::contiguous(shape.clone()) })
    }

    /// The buffer, and where the elements lie in it.
    pub(crate) fn parts(&self) -> (&Storage<T>, &Layout) {
        (&self.storage, &self.layout)
    }

    /// The buffer, and where the elements lie in it, given away.
    pub(crate) fn into_parts(self) -> (Storage<T>, Layout) {
        (self.storage, self.layout)
    }

    /// As kernels see it.
    pub(crate) fn source(&self) -> Source<'_, T> {
        Source { data: self.storage.as_slice(), layout: &self.layout }
    }

    /// The same buffer under another layout, which the caller made from this tensor's.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Tensor::from_parts(self.storage.clone(), layout)
    }

    /// The same elements, each repetition along an expanded dimension once.
    pub(crate) fn distinct(&self) -> Self {
        self.with_layout(self.layout.distinct())
    }

    /// The elements of this tensor's buffer, for writing through its layout. Copies them first where another tensor
    /// holds the buffer too, or two elements may lie in one place; the layout is then contiguous.
    pub(crate) fn writable(&mut self, at: Site) -> Result<(&mut [T], &Layout), Error> {
        if !self.layout.is_injective() || self.storage.get_mut().is_none() {
            *self = self.copied(at)?;
        }
        match self.storage.get_mut() {
            Some(data) => Ok((data, &self.layout)),
            None => unreachable!("a fresh copy has one holder"),
        }
    }

    /// A contiguous copy.
    pub(crate) fn copied(&self, at: Site) -> Result<Self, Error> {
        Tensor::build(self.shape(), at, |out| elementwise::copy(self.source(), out))
    }

    /// The sizes, outermost first.
    #[inline]
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// Number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Strides in elements; 0 where expanded, negative where flipped.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Whether elements follow one another in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Whether both look at the same buffer. An expanded tensor shares its operand's.
    pub fn shares_storage(&self, other: &Self) -> bool {
        self.storage.same(&other.storage)
    }

    /// The element at `index`, or `None` where the index does not fit.
    pub fn get(&self, index: &[usize]) -> Option<T> {
        self.layout.position(index).map(|position| self.storage.as_slice()[position])
    }

    /// The elements in row-major order where they lie so in memory. See [`to_vec`](Self::to_vec) for any layout.
    pub fn as_slice(&self) -> Option<&[T]> {
        let start = self.layout.offset();
        self.is_contiguous().then(|| match self.numel() {
            0 => &[],
            count => &self.storage.as_slice()[start..start + count],
        })
    }

    /// The elements in row-major order, for writing. They are copied first where another tensor holds them too, or where they
    /// do not lie so in memory.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let mut x = Tensor::from([1.0, 2.0]);
    /// let y = x.clone();
    /// x.make_mut()[0] = 5.0;
    /// assert_eq!((x.to_vec(), y.to_vec()), (vec![5.0, 2.0], vec![1.0, 2.0]));
    /// ```
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the copy.
    #[track_caller]
    pub fn make_mut(&mut self) -> &mut [T] {
        match self.try_make_mut(Site::here("make_mut")) {
            Ok(elements) => elements,
            Err(error) => raise(error),
        }
    }

    fn try_make_mut(&mut self, at: Site) -> Result<&mut [T], Error> {
        if !self.is_contiguous() {
            *self = self.copied(at)?;
        }
        let count = self.numel();
        let (data, layout) = self.writable(at)?;
        let start = if count == 0 { 0 } else { layout.offset() };
        Ok(&mut data[start..start + count])
    }

    /// One pass over this tensor, `input` and `states`, all of one shape: `f` of an element of each gives the new elements of
    /// this tensor and of the states. A tensor that shares its storage with no other is changed in place, without allocation.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let (mut x, mut total) = (Tensor::from([1.0, 2.0]), Tensor::zeros([2]));
    /// x.update_with(&Tensor::from([0.5, 0.25]), [&mut total], |x, dx, [total]| (x - dx, [total + dx]));
    /// assert_eq!((x.to_vec(), total.to_vec()), (vec![0.5, 1.75], vec![0.5, 0.25]));
    /// ```
    ///
    /// # Errors
    ///
    /// Where a shape is another one, or memory cannot hold a copy.
    pub fn try_update_with<const N: usize>(
        &mut self,
        input: &Self,
        states: [&mut Self; N],
        f: impl Fn(T, T, [T; N]) -> (T, [T; N]) + Sync,
    ) -> Result<(), Error> {
        let at = Site::here("update_with");
        let others = std::iter::once(input.shape()).chain(states.iter().map(|state| state.shape()));
        if let Some(other) = others.into_iter().find(|&other| other != self.shape()) {
            let message = format!("an update needs equal shapes, but got {} and {other}", self.shape());
            return Err(Error::argument(at, message));
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
            *slice = state.try_make_mut(at)?;
        }
        crate::kernel::step::update(self.try_make_mut(at)?, input, slices, f);
        Ok(())
    }

    /// A copy of the elements in row-major order.
    pub(crate) fn elements(&self, at: Site) -> Result<Vec<T>, Error> {
        let refused = |_| Error::OutOfMemory { shape: self.shape().clone(), dtype: T::DTYPE, at };
        let mut out = reserve::zeroed(self.numel()).map_err(refused)?;
        elementwise::copy(self.source(), &mut out);
        Ok(out)
    }

    /// The elements in row-major order, one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + '_ {
        let (data, in_order) = (self.storage.as_slice(), self.as_slice());
        let space = crate::shape::iteration_space::IterationSpace::new(self.shape(), [&self.layout]);
        (0..self.numel()).map(move |index| match in_order {
            Some(elements) => elements[index],
            None => data[space.position(0, index)],
        })
    }

    /// The element of a tensor that has exactly one, of any rank. PyTorch: `item`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// assert_eq!(Tensor::from([[4.5f64]]).item(), 4.5);
    /// ```
    ///
    /// # Errors
    ///
    /// Where there are fewer or more elements than one.
    pub fn try_item(&self) -> Result<T, Error> {
        let at = Site::here("item");
        if self.numel() != 1 {
            let message = format!("a Tensor with {} elements cannot be converted to Scalar", self.numel());
            return Err(Error::argument(at, message));
        }
        Ok(self.storage.as_slice()[self.layout.offset()])
    }

    /// A copy of the elements in row-major order. PyTorch: `flatten().tolist()`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let row = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!(row.expand([2, 3]).to_vec(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// Where memory cannot hold them: an expanded tensor may have far more elements than its buffer.
    pub fn try_to_vec(&self) -> Result<Vec<T>, Error> {
        self.elements(Site::here("to_vec"))
    }

    /// The same elements in row-major order under another shape, never a copy: refused where the strides do not allow it.
    /// One size may be -1. See [`Views::reshape`](crate::ops::Views::reshape), which copies where it must. PyTorch:
    /// `view`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let x = Tensor::<f64>::ones([2, 3]);
    /// assert!(x.view([6]).shares_storage(&x));
    /// assert!(x.t().try_view([6]).is_err());
    /// ```
    pub fn try_view(&self, sizes: impl Into<Sizes>) -> Result<Self, Error> {
        let at = Site::here("view");
        let shape = sizes.into().resolve_reshape(self.shape(), at)?;
        let layout = self.layout.reshape(&shape).ok_or_else(|| {
            let message =
                "view size is not compatible with input tensor's size and stride (at least one dimension spans \
                           across two contiguous subspaces). Use .reshape(...) instead."
                    .into();
            Error::Reshape { message, at }
        })?;
        Ok(self.with_layout(layout))
    }

    /// The same elements in row-major order: itself where they lie so already, a copy otherwise. PyTorch:
    /// `contiguous`.
    pub fn try_contiguous(&self) -> Result<Self, Error> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copied(Site::here("contiguous")) }
    }

    /// The elements as another type, converted as `as` does: floats toward zero and saturating, integers
    /// wrapping; `true` is 1; what is not zero is `true`. PyTorch: `to`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let pixels = Tensor::from([0u8, 128, 255]);
    /// assert_eq!(pixels.cast::<f32>().to_vec(), [0.0, 128.0, 255.0]);
    /// ```
    pub fn try_cast<U: Element>(&self) -> Result<Tensor<U>, Error> {
        let at = Site::here("cast");
        Tensor::build(self.shape(), at, |out| match T::DTYPE {
            // Through f64, integers beyond 2⁵³ would lose digits.
            DType::I64 => elementwise::cast(self.source(), out, |x: T| U::from_i64(x.to_i64())),
            _ => elementwise::cast(self.source(), out, |x: T| U::from_f64(x.to_f64())),
        })
    }

    /// A tensor of `data` in row-major order. Takes the vector's memory.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let table = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6i64], [2, 3]);
    /// assert_eq!(table.get(&[1, 0]), Some(4));
    /// ```
    ///
    /// # Errors
    ///
    /// Where `data` has not as many elements as `shape`.
    pub fn try_from_vec(data: Vec<T>, shape: impl Into<Sizes>) -> Result<Self, Error> {
        let at = Site::here("from_vec");
        let shape = shape.into().resolve_plain(at)?;
        if addressable::<T>(&shape, at)? != data.len() {
            let message = format!("shape '{shape}' is invalid for input of size {}", data.len());
            return Err(Error::Reshape { message, at });
        }
        Ok(Tensor { storage: Storage::from_vec(data), layout: Layout::contiguous(shape) })
    }

    /// A window with any strides over `data`: element `(i, j, …)` is `data[offset + i * strides[0] + j * strides[1] +
    /// …]`. PyTorch: `as_strided`.
    ///
    /// # Errors
    ///
    /// Where an element would lie outside `data`.
    #[track_caller]
    pub fn try_from_strided(
        data: Vec<T>,
        shape: impl Into<Sizes>,
        strides: &[isize],
        offset: usize,
    ) -> Result<Self, Error> {
        let at = Site::here("from_strided");
        let shape = shape.into().resolve_plain(at)?;
        addressable::<T>(&shape, at)?;
        let layout = Layout::strided(shape.clone(), strides, offset, data.len()).ok_or_else(|| {
            let message = format!(
                "strides {strides:?} and offset {offset} reach outside a buffer of {} elements for shape {shape}",
                data.len()
            );
            Error::argument(at, message)
        })?;
        Ok(Tensor { storage: Storage::from_vec(data), layout })
    }

    /// A tensor of one number repeated. It occupies one element: it is an expansion.
    pub(crate) fn splat(value: T, shape: &Shape, at: Site) -> Result<Self, Error> {
        addressable::<T>(shape, at)?;
        let layout = Layout::contiguous(Shape::scalar());
        match layout.expand(shape) {
            Some(layout) => Ok(Tensor { storage: Storage::one(value), layout }),
            None => unreachable!("a scalar expands to every shape"),
        }
    }

    /// A tensor filled with one value. PyTorch: `full`.
    ///
    /// # Errors
    ///
    /// Where memory cannot hold it.
    pub fn try_full(shape: impl Into<Sizes>, value: T) -> Result<Self, Error> {
        let at = Site::here("full");
        let shape = shape.into().resolve_plain(at)?;
        Tensor::build(&shape, at, |out| out.fill(value))
    }

    /// Zeros (`false`). PyTorch: `zeros`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it; see [`try_full`](Self::try_full).
    #[track_caller]
    pub fn zeros(shape: impl Into<Sizes>) -> Self {
        Tensor::full(shape, T::ZERO)
    }

    /// Ones (`true`). PyTorch: `ones`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it; see [`try_full`](Self::try_full).
    #[track_caller]
    pub fn ones(shape: impl Into<Sizes>) -> Self {
        Tensor::full(shape, T::ONE)
    }

    /// A tensor of rank 0.
    pub fn scalar(value: T) -> Self {
        Tensor { storage: Storage::one(value), layout: Layout::contiguous(Shape::scalar()) }
    }

    /// Each element from its index, in row-major order.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// let table = Tensor::from_fn([2, 3], |index| 10 * index[0] as i64 + index[1] as i64);
    /// assert_eq!(table.to_vec(), [0, 1, 2, 10, 11, 12]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it.
    #[track_caller]
    pub fn from_fn(shape: impl Into<Sizes>, mut f: impl FnMut(&[usize]) -> T) -> Self {
        let at = Site::here("from_fn");
        let built = shape.into().resolve_plain(at).and_then(|shape| {
            Tensor::build(&shape, at, |out| {
                let mut index = vec![0; shape.rank()];
                for out in out {
                    *out = f(&index);
                    for axis in (0..shape.rank()).rev() {
                        index[axis] += 1;
                        if index[axis] < shape[axis] {
                            break;
                        }
                        index[axis] = 0;
                    }
                }
            })
        });
        match built {
            Ok(tensor) => tensor,
            Err(error) => raise(error),
        }
    }

    /// The identity matrix `[n, n]`. PyTorch: `eye`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it.
    #[track_caller]
    pub fn eye(n: usize) -> Self {
        Tensor::from_fn([n, n], |index| if index[0] == index[1] { T::ONE } else { T::ZERO })
    }

    /// `f` of each element, in row-major order.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold the result.
    #[track_caller]
    pub fn map<U: Element>(&self, f: impl Fn(T) -> U + Sync) -> Tensor<U> {
        match Tensor::build(self.shape(), Site::here("map"), |out| elementwise::cast(self.source(), out, f)) {
            Ok(tensor) => tensor,
            Err(error) => raise(error),
        }
    }
}

impl<T: Number> Tensor<T> {
    /// `0, 1, …, n - 1`. PyTorch: `arange`.
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it.
    #[track_caller]
    pub fn arange(n: usize) -> Self {
        Tensor::from_fn([n], |index| T::from_i64(index[0] as i64))
    }
}

impl<T: Float> Tensor<T> {
    /// `n` numbers evenly spaced from `start` to `end`, both included. PyTorch: `linspace`.
    ///
    /// ```
    /// use wengert_tensor::prelude::*;
    ///
    /// assert_eq!(Tensor::<f64>::linspace(0.0, 1.0, 5).to_vec(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where memory cannot hold it.
    #[track_caller]
    pub fn linspace(start: f64, end: f64, n: usize) -> Self {
        let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
        Tensor::from_fn([n], |index| {
            // From the nearer end, so that both ends are exact.
            let i = index[0];
            T::from_f64(if 2 * i < n { start + step * i as f64 } else { end - step * (n - 1 - i) as f64 })
        })
    }
}

impl<T: Element> Clone for Tensor<T> {
    fn clone(&self) -> Self {
        Tensor { storage: self.storage.clone(), layout: self.layout.clone() }
    }
}

impl<T: Element> Default for Tensor<T> {
    /// A single zero.
    fn default() -> Self {
        Tensor::scalar(T::ZERO)
    }
}

/// Same shape and equal elements; a NaN equals nothing.
impl<T: Element> PartialEq for Tensor<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape() && self.iter().zip(other.iter()).all(|(x, y)| x == y)
    }
}

impl<T: Element> From<T> for Tensor<T> {
    fn from(value: T) -> Self {
        Tensor::scalar(value)
    }
}

impl<T: Element> From<&[T]> for Tensor<T> {
    fn from(data: &[T]) -> Self {
        Tensor::from(data.to_vec())
    }
}

impl<T: Element> From<Vec<T>> for Tensor<T> {
    /// One dimension.
    fn from(data: Vec<T>) -> Self {
        let shape = Shape::from([data.len()]);
        Tensor { storage: Storage::from_vec(data), layout: Layout::contiguous(shape) }
    }
}

impl<T: Element, const A: usize> From<[T; A]> for Tensor<T> {
    fn from(data: [T; A]) -> Self {
        Tensor::from(data.to_vec())
    }
}

impl<T: Element, const A: usize, const B: usize> From<[[T; B]; A]> for Tensor<T> {
    fn from(data: [[T; B]; A]) -> Self {
        nested(data.as_flattened(), [A, B])
    }
}

impl<T: Element, const A: usize, const B: usize, const C: usize> From<[[[T; C]; B]; A]> for Tensor<T> {
    fn from(data: [[[T; C]; B]; A]) -> Self {
        nested(data.as_flattened().as_flattened(), [A, B, C])
    }
}

impl<T: Element, const A: usize, const B: usize, const C: usize, const D: usize> From<[[[[T; D]; C]; B]; A]>
    for Tensor<T>
{
    fn from(data: [[[[T; D]; C]; B]; A]) -> Self {
        nested(data.as_flattened().as_flattened().as_flattened(), [A, B, C, D])
    }
}

// An integer literal without a type is an i32, which is not an element: `Tensor::from([1, 2])` is of i64, as in PyTorch.
impl From<Vec<i32>> for Tensor<i64> {
    fn from(data: Vec<i32>) -> Self {
        Tensor::from(data.into_iter().map(i64::from).collect::<Vec<_>>())
    }
}

impl<const A: usize> From<[i32; A]> for Tensor<i64> {
    fn from(data: [i32; A]) -> Self {
        Tensor::from(data.map(i64::from))
    }
}

impl<const A: usize, const B: usize> From<[[i32; B]; A]> for Tensor<i64> {
    fn from(data: [[i32; B]; A]) -> Self {
        Tensor::from(data.map(|row| row.map(i64::from)))
    }
}

impl<const A: usize, const B: usize, const C: usize> From<[[[i32; C]; B]; A]> for Tensor<i64> {
    fn from(data: [[[i32; C]; B]; A]) -> Self {
        Tensor::from(data.map(|matrix| matrix.map(|row| row.map(i64::from))))
    }
}

/// Tensors are not indexed by `[]`, which can only give references to what lies in memory.
///
/// Nothing has this trait: it is there for the sentence of the compiler's error.
#[diagnostic::on_unimplemented(
    message = "a tensor is not indexed by `[]`",
    label = "no index of a tensor",
    note = "a row is `x.select(0, 1)`, an element `x.get(&[1, 2])` or `x.select(0, 1).item()`, a range `x.slice(0, Some(1), Some(3), 1)`",
    note = "several of them at once: `x.index_items(&index_items![1, .., 2])`; along an index tensor: `x.index_select(0, &index)`"
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

fn nested<T: Element, const R: usize>(data: &[T], shape: [usize; R]) -> Tensor<T> {
    Tensor { storage: Storage::from_vec(data.to_vec()), layout: Layout::contiguous(Shape::from(shape)) }
}
