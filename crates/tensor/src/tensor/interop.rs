//! Conversions from and to `ndarray` arrays, without a copy where that is sound.
//!
//! | from | to | copies |
//! |---|---|---|
//! | [`Array`] | [`Tensor`] | never: the tensor takes over the array's vector, and has its offset and strides, also negative ones |
//! | [`ArcArray`] | [`Tensor`] | never: both share the memory, and each copies before it writes |
//! | [`ArrayView<'static>`](ArrayView) | [`Tensor`], by [`from_static`](Tensor::from_static) | only if the view has gaps or overlaps |
//! | [`ArrayView`] | [`Tensor`] | always: a tensor may outlive any borrow |
//! | [`&Tensor`](Tensor) | [`ArrayViewD`], by [`as_ndarray`](Tensor::as_ndarray) | never, whatever the strides |
//! | [`Tensor`] | [`ArrayD`] | unless the tensor is contiguous, and covers a buffer that was a vector and is not shared |
//!
//! The module `memory::storage` implements the sharing of memory, so this module needs no `unsafe`.

use ndarray::{ArcArray, Array, ArrayD, ArrayView, ArrayViewD, Axis, Dimension, IxDyn, Slice};

use wengert_macros::twins;

use crate::memory::reserve;
use crate::memory::reserve::addressable;
use crate::memory::storage::Storage;
use crate::{Element, Error, Layout, Shape, Site, Strides, Tensor};

impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor<T> {
    /// Takes over the array's memory. The strides, also negative ones, and the offset stay the same.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// use ndarray::{array, s};
    ///
    /// let flipped = array![[1.0, 2.0], [3.0, 4.0]].slice_move(s![..;-1, ..]);
    /// let x = Tensor::from(flipped);
    /// assert_eq!(x.strides(), [-2, 1]);
    /// assert_eq!(x, Tensor::from([[3.0, 4.0], [1.0, 2.0]]));
    /// ```
    fn from(array: Array<T, D>) -> Self {
        let (shape, strides) = (Shape::from(array.shape()), Strides::from_slice(array.strides()));
        let (data, offset) = array.into_raw_vec_and_offset();
        let layout = match offset {
            // The strides of an empty array have no meaning, so its tensor is contiguous.
            None => Layout::contiguous(shape),
            Some(_) if shape.numel() == 0 => Layout::contiguous(shape),
            Some(offset) => match Layout::strided(shape, &strides, offset, data.len()) {
                Some(layout) => layout,
                None => unreachable!("an array's elements lie in its own vector"),
            },
        };
        Tensor::from_parts(Storage::from_vec(data), layout)
    }
}

impl<T: Element, D: Dimension> From<ArcArray<T, D>> for Tensor<T> {
    /// Shares the array's memory without a copy. Both sides copy before they write, so neither sees changes of the other.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// use ndarray::ArcArray;
    ///
    /// let array = ArcArray::from(vec![1.0, 2.0]);
    /// let mut x = Tensor::from(array.clone());
    /// assert_eq!(x.as_slice().unwrap().as_ptr(), array.as_ptr());
    /// x += 1.0;
    /// assert_eq!((x.to_vec(), array.to_vec()), (vec![2.0, 3.0], vec![1.0, 2.0]));
    /// ```
    fn from(array: ArcArray<T, D>) -> Self {
        let (storage, layout) = Storage::from_arc_array(array);
        Tensor::from_parts(storage, layout)
    }
}

impl<T: Element, D: Dimension> From<ArrayView<'_, T, D>> for Tensor<T> {
    /// Copies the elements of a view. Elements that a broadcast view repeats are copied once. See [`from_ndarray`](Tensor::from_ndarray).
    ///
    /// # Panics
    ///
    /// If memory cannot hold the copy, or the view has more elements than a tensor can have.
    #[track_caller]
    fn from(view: ArrayView<'_, T, D>) -> Self {
        Tensor::from_ndarray(view)
    }
}

impl<T: Element> From<Tensor<T>> for ArrayD<T> {
    /// Returns the elements as an array; see [`into_ndarray`](Tensor::into_ndarray).
    ///
    /// # Panics
    ///
    /// If a copy is needed and memory cannot hold it, or if `ndarray` does not support the shape.
    #[track_caller]
    fn from(tensor: Tensor<T>) -> Self {
        tensor.into_ndarray()
    }
}

#[twins]
impl<T: Element> Tensor<T> {
    /// Returns a copy of a view's elements. PyTorch: `torch.tensor(array)`.
    ///
    /// A copy is necessary because the tensor may outlive the view's borrow. If you own the array, `Tensor::from(array)` copies nothing. A
    /// dimension with stride 0 is copied once and expanded again.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// use ndarray::array;
    ///
    /// let matrix = array![[1.0, 2.0], [3.0, 4.0]];
    /// let column = Tensor::from_ndarray(matrix.column(1));
    /// assert_eq!(column.to_vec(), [2.0, 4.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If memory cannot hold the copy, or the view has more elements than a tensor can have.
    #[doc(alias("from_numpy"))]
    pub fn try_from_ndarray<D: Dimension>(view: ArrayView<'_, T, D>) -> Result<Self, Error> {
        Tensor::copy_view(view, Site::here("from_ndarray"))
    }

    fn copy_view<D: Dimension>(mut view: ArrayView<'_, T, D>, at: Site) -> Result<Self, Error> {
        let shape = Shape::from(view.shape());
        addressable::<T>(&shape, at)?;
        for axis in 0..shape.rank() {
            if view.strides()[axis] == 0 && shape[axis] > 1 {
                view.slice_axis_inplace(Axis(axis), Slice::from(..1));
            }
        }
        let distinct = Shape::from(view.shape());
        let refused = |_| Error::out_of_memory(&distinct, T::DTYPE, at);
        let mut data = reserve::with_capacity(view.len()).map_err(refused)?;
        data.extend(view.iter().copied());
        match Layout::contiguous(distinct).expand(&shape) {
            Some(layout) => Ok(Tensor::from_parts(Storage::from_vec(data), layout)),
            None => unreachable!("dimensions of size 1 expand to their original size"),
        }
    }

    /// Returns the elements of a view that lives as long as the program, for example of a `static` table or of leaked memory.
    /// Copies nothing unless the view has gaps or overlapping windows: other code may write to the elements in gaps.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// use ndarray::ArrayView;
    ///
    /// static TABLE: [f32; 4] = [0.5, 1.0, 1.5, 2.0];
    /// let x = Tensor::from_static(ArrayView::from(&TABLE));
    /// assert_eq!(x.as_slice().unwrap().as_ptr(), TABLE.as_ptr());
    /// ```
    ///
    /// # Errors
    ///
    /// If a copy is needed and memory cannot hold it, or the view has more elements than a tensor can have.
    pub fn try_from_static<D: Dimension>(view: ArrayView<'static, T, D>) -> Result<Self, Error> {
        let at = Site::here("from_static");
        addressable::<T>(&Shape::from(view.shape()), at)?;
        match Storage::from_static_view(view.clone()) {
            Some((storage, layout)) => Ok(Tensor::from_parts(storage, layout)),
            None => Tensor::copy_view(view, at),
        }
    }

    /// Returns a view of the elements as an `ndarray` view, without a copy. Any layout is supported: an expanded dimension has stride 0,
    /// and a flipped dimension has a negative stride. PyTorch: `numpy()`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).flip(1);
    /// let view = x.as_ndarray();
    /// assert_eq!(view[[0, 0]], 3.0);
    /// assert_eq!(view.sum(), 21.0);
    /// ```
    ///
    /// # Errors
    ///
    /// If the shape has a size of 0 and the product of the other sizes overflows, which `ndarray` does not support.
    #[doc(alias("numpy"))]
    pub fn try_as_ndarray(&self) -> Result<ArrayViewD<'_, T>, Error> {
        let at = Site::here("as_ndarray");
        let (storage, layout) = self.parts();
        storage.view(layout).ok_or_else(|| too_large_error::<T>(layout.shape(), at))
    }

    /// Returns a copy of the elements as an array in row-major order.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the copy, or for the reasons of [`try_as_ndarray`](Self::try_as_ndarray).
    pub fn try_to_ndarray(&self) -> Result<ArrayD<T>, Error> {
        let at = Site::here("to_ndarray");
        let data = self.elements(at)?;
        array_from_shape(self.shape(), data).ok_or_else(|| too_large_error::<T>(self.shape(), at))
    }

    /// Converts to an array in row-major order. Moves the elements if the tensor was made from a vector, is contiguous, covers its buffer
    /// and shares the buffer with no other tensor. Otherwise copies them. The results of operations are usually copied, because most of
    /// their buffers come from a pool of reused memory and are not vectors.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let start = x.as_slice().unwrap().as_ptr();
    /// let array = x.into_ndarray();
    /// assert_eq!((array.as_ptr(), array[[1, 0]]), (start, 3.0));
    /// ```
    ///
    /// # Errors
    ///
    /// If a copy is needed and memory cannot hold it, or for the reasons of [`try_as_ndarray`](Self::try_as_ndarray).
    pub fn try_into_ndarray(self) -> Result<ArrayD<T>, Error> {
        let at = Site::here("into_ndarray");
        let shape = self.shape().clone();
        let (storage, layout) = self.into_parts();
        let whole = layout.is_contiguous() && layout.numel() == storage.len();
        let data = match if whole { storage.into_vec() } else { Err(storage) } {
            Ok(data) => data,
            Err(storage) => Tensor::from_parts(storage, layout).elements(at)?,
        };
        array_from_shape(&shape, data).ok_or_else(|| too_large_error::<T>(&shape, at))
    }
}

fn array_from_shape<T>(shape: &Shape, data: Vec<T>) -> Option<ArrayD<T>> {
    ArrayD::from_shape_vec(IxDyn(shape), data).ok()
}

fn too_large_error<T: Element>(shape: &Shape, at: Site) -> Error {
    Error::TooLarge { shape: shape.clone(), dtype: T::DTYPE, at }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, Array3, ArrayViewMut, arr0, array, s};

    use super::*;
    use crate::ops::{Arithmetic, Views};

    fn count(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| (10 * i + j) as f64)
    }

    fn lowest<D: Dimension>(array: &ArrayView<f64, D>) -> *const f64 {
        array.iter().map(std::ptr::from_ref).min().unwrap()
    }

    /// Returns arrays with different layouts: row-major, column-major, flipped, stepped, parts of larger arrays, with sizes 0 and 1, and of
    /// rank 0.
    fn owned() -> Vec<ArrayD<f64>> {
        let cube = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as f64);
        vec![
            count(3, 4).into_dyn(),
            count(3, 4).reversed_axes().into_dyn(),
            count(3, 4).slice_move(s![..;-1, ..]).into_dyn(),
            count(3, 4).slice_move(s![..;-1, ..;-1]).into_dyn(),
            count(5, 7).slice_move(s![1..;2, 1..6;-2]).into_dyn(),
            count(5, 7).slice_move(s![2, ..;-1]).into_dyn(),
            count(5, 7).slice_move(s![2..2, ..]).into_dyn(),
            cube.clone().permuted_axes([2, 0, 1]).into_dyn(),
            cube.slice_move(s![..;-1, 1..2, ..;-3]).permuted_axes([1, 2, 0]).into_dyn(),
            arr0(2.5).into_dyn(),
            Array1::zeros(0).into_dyn(),
            Array1::from_elem(1, 7.0).slice_move(s![..;-1]).into_dyn(),
        ]
    }

    #[test]
    fn arrays_come_in_and_go_out_without_a_copy() {
        for array in owned() {
            let expected = array.clone();
            let (start, strides) = (array.as_ptr(), array.strides().to_vec());
            let shared = array.clone().into_shared();
            let own = Tensor::from(array);
            assert_eq!(own.to_ndarray(), expected);
            let view = own.as_ndarray();
            assert_eq!(view, expected);
            if expected.is_empty() {
                continue;
            }
            assert_eq!((view.as_ptr(), own.strides()), (start, &strides[..]));

            let held = shared.clone();
            let foreign = Tensor::from(shared);
            let view = foreign.as_ndarray();
            assert_eq!((view.as_ptr(), view.strides()), (held.as_ptr(), held.strides()));
            assert_eq!(view, expected);
        }
    }

    #[test]
    fn every_view_of_a_tensor_is_a_view_of_ndarray() {
        let x = Tensor::from_fn([2, 3, 4], |index| (100 * index[0] + 10 * index[1] + index[2]) as f64);
        let start = x.as_slice().unwrap().as_ptr();
        let table = [
            x.clone(),
            x.permute([2, 0, 1]),
            x.flip(0),
            x.flip([0, 1, 2]).transpose(0, 2),
            x.slice(2, (1.., 2)).flip(2),
            x.unsqueeze(0).expand([5, 2, 3, 4]),
            x.narrow(1, 2, 1).expand([2, 6, 4]).flip(1),
            x.unfold(2, 2, 1),
            x.diagonal(1, 1, 2).flip(-1),
            x.narrow(0, 1, 0).flip(1),
            x.select(0, 1).select(0, 2).select(0, 3),
        ];
        for x in table {
            let view = x.as_ndarray();
            assert_eq!(view.shape(), x.shape().sizes());
            assert_eq!(view.iter().copied().collect::<Vec<_>>(), x.to_vec());
            assert_eq!(x.to_ndarray(), view);
            if x.numel() > 0 {
                let place = lowest(&view).addr() - start.addr();
                assert_eq!(place / size_of::<f64>(), x.layout().extent().0);
                assert!(
                    std::iter::zip(view.strides(), x.strides()).zip(view.shape()).all(|((a, b), &n)| a == b || n == 1)
                );
            }
            assert_eq!(Tensor::from(view), x);
        }
    }

    #[test]
    fn a_broadcast_view_is_copied_once_and_expanded() {
        let row = array![1.0, 2.0];
        let x = Tensor::from(row.broadcast((3, 4, 2)).unwrap());
        assert_eq!((x.shape().sizes(), x.strides()), (&[3, 4, 2][..], &[0isize, 0, 1][..]));
        assert_eq!(x, Tensor::from([1.0, 2.0]).expand([3, 4, 2]));
        let huge = Tensor::from(row.broadcast((1 << 40, 2)).unwrap());
        assert_eq!(huge.get(&[1 << 39, 1]), Some(2.0));
        let refused = Tensor::try_from_ndarray(row.broadcast((1 << 61, 2)).unwrap());
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
    }

    #[test]
    fn writing_never_reaches_a_shared_array() {
        let array = count(2, 3).into_shared();
        let before = array![[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]];
        let mut x = Tensor::from(array.clone());
        x.add_(1.0);
        x.mul_(Tensor::from([2.0, 3.0, 4.0]));
        assert_eq!(array, before);
        assert_eq!(x.to_ndarray(), array![[2.0, 6.0, 12.0], [22.0, 36.0, 52.0]].into_dyn());

        // Writing to an array that shares its memory with a tensor copies the array, and the tensor stays unchanged.
        let mut array = array;
        let x = Tensor::from(array.clone());
        array[[0, 0]] = 99.0;
        assert_eq!(x.to_ndarray(), before.into_dyn());
    }

    #[test]
    fn a_static_view_is_shared_where_it_has_no_gaps() {
        let leaked: &'static [f64] = Vec::leak((0..12).map(f64::from).collect());
        let view = ArrayView::from_shape((3, 4), leaked).unwrap();
        let table = [
            (view.into_dyn(), true),
            (view.reversed_axes().into_dyn(), true),
            (view.slice_move(s![..;-1, ..]).into_dyn(), true),
            (view.slice_move(s![1.., ..;-1]).into_dyn(), true),
            (view.slice_move(s![0..1, ..]).into_dyn(), true),
            (view.slice_move(s![.., ..2]).into_dyn(), false),
            (view.slice_move(s![..;2, ..]).into_dyn(), false),
            (view.slice_move(s![2, ..;-2]).into_dyn(), false),
        ];
        for (view, shares) in table {
            let x = Tensor::from_static(view.clone());
            assert_eq!(x.as_ndarray(), view);
            assert_eq!(x.as_ndarray().as_ptr() == view.as_ptr(), shares, "{view:?}");
            let mut y = x.clone();
            drop(x);
            y.add_(1.0);
            assert_eq!(y.as_ndarray(), &view + 1.0);
        }
        assert_eq!(leaked[..3], [0.0, 1.0, 2.0]);
        assert_eq!(Tensor::from_static(view.slice_move(s![3.., ..])).shape(), &[0, 4]);
    }

    #[test]
    fn elements_in_the_gaps_of_a_static_view_may_change() {
        let leaked: &'static mut [f64] = Vec::leak(vec![1.0, 2.0, 3.0, 4.0]);
        let (even, mut odd) = ArrayViewMut::from(leaked).multi_slice_move((s![..;2], s![1..;2]));
        let even: &'static ArrayViewMut<f64, _> = Box::leak(Box::new(even));
        let x = Tensor::from_static(even.view());
        odd[0] = 20.0;
        assert_eq!(x.to_vec(), [1.0, 3.0]);
    }

    #[test]
    fn an_unshared_tensor_moves_into_an_array() {
        let base = || Tensor::from_vec((0..12).map(|i| f64::from(10 * (i / 4) + i % 4)).collect(), [3, 4]);
        let start = |x: &Tensor<f64>| x.as_ndarray().as_ptr();

        let x = base();
        let place = start(&x);
        assert_eq!(ArrayD::from(x).as_ptr(), place);

        let (held, x) = (base(), base());
        let table = [
            held.clone(),
            x.flip(0),
            x.t(),
            x.narrow(0, 0, 2),
            Tensor::scalar(1.0).expand([3, 4]),
            base().narrow(0, 1, 0),
            -base(),
        ];
        for x in table {
            let (place, expected) = (start(&x), x.to_ndarray());
            let array = ArrayD::from(x);
            assert!(array.is_empty() || array.as_ptr() != place);
            assert_eq!(array, expected);
        }
        assert_eq!(held, base());
    }

    #[test]
    fn shapes_that_ndarray_cannot_count_are_errors() {
        let nothing = Tensor::<f64>::zeros([1usize << 62, 1 << 62, 0]);
        assert!(matches!(nothing.try_as_ndarray(), Err(Error::TooLarge { .. })));
        assert!(matches!(nothing.try_to_ndarray(), Err(Error::TooLarge { .. })));
        assert!(matches!(nothing.try_into_ndarray(), Err(Error::TooLarge { .. })));
        let huge = Tensor::scalar(1.0f64).expand([1i64 << 40, 1 << 18].map(|size| size as isize));
        assert_eq!(huge.as_ndarray().strides(), [0, 0]);
        assert!(matches!(huge.try_to_ndarray(), Err(Error::OutOfMemory { .. })));
    }
}
