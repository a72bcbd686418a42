//! Work in parts, on every core: the one place that asks for threads on behalf of the kernels that use it.
//!
//! Which parts there are depends on shapes alone, and no part sees another's results: any number of threads gives the same
//! bits.
#![allow(unsafe_code)]

use crate::threads;

/// `f` of each number below `count`, in any order, on any thread.
pub(crate) fn each(count: usize, f: impl Fn(usize) + Sync) {
    threads::for_each(count, f);
}

/// `f` of each piece of `out`, `size` elements long but for the last, with its number.
pub(crate) fn each_piece<T: Send>(out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let pieces = Pieces::new(out, size);
    // SAFETY: every number is handed out once.
    each(pieces.count(), |number| f(number, unsafe { pieces.get(number) }));
}

/// A slice in pieces, each of which one thread may hold.
pub(crate) struct Pieces<'a, T> {
    start: *mut T,
    len: usize,
    size: usize,
    _borrowed: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: what is shared are disjoint `&mut [T]`, each held by one thread (the caller of `get` promises so).
unsafe impl<T: Send> Sync for Pieces<'_, T> {}

impl<'a, T> Pieces<'a, T> {
    pub(crate) fn new(data: &'a mut [T], size: usize) -> Self {
        assert!(size > 0, "a piece has elements");
        Pieces { start: data.as_mut_ptr(), len: data.len(), size, _borrowed: std::marker::PhantomData }
    }

    pub(crate) fn count(&self) -> usize {
        self.len.div_ceil(self.size)
    }

    /// Piece `number`.
    ///
    /// # Safety
    ///
    /// No piece is asked for while it is held.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn get(&self, number: usize) -> &mut [T] {
        let from = number * self.size;
        assert!(from < self.len, "there are so many pieces");
        // SAFETY: inside the slice; pieces are disjoint, and this one is not held (the caller's promise).
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), self.size.min(self.len - from)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_once_and_the_last_may_be_short() {
        for (len, size) in [(0, 3), (1, 3), (3, 3), (10, 3), (1000, 7)] {
            let mut out = vec![0; len];
            each_piece(&mut out, size, |number, piece| piece.iter_mut().for_each(|x| *x += number + 1));
            assert!(out.iter().enumerate().all(|(i, &x)| x == i / size + 1), "{len} {size}");
        }
    }
}
