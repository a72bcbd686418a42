//! Divide and conquer for symmetric tridiagonal and bidiagonal matrices. Both are stored as two vectors: the diagonal, and the off-diagonal
//! elements. A matrix is divided until its blocks are small. Then the solutions of neighbouring blocks are joined.
//!
//! `symmetric_halves` and `bidiagonal_halves` say how a block is divided and how two solutions are joined. This file knows neither.

use wengert_tensor::{Float, each_part};

use super::arithmetic::near_one;
use super::failure::Failure;

/// The largest number of rows of a block that is not divided. For larger blocks, division is faster than the iteration for small blocks.
pub(super) const LEAF: usize = 32;

/// The largest number of rows of a block that is one task of the thread pool.
const TASK: usize = 128;

/// The diagonal and the off-diagonal elements of a block.
pub(super) type Block<'a, T> = (&'a mut [T], &'a mut [T]);

/// A problem that is divided into halves.
pub(super) trait Halves<T: Float>: Sync {
    /// The solution for a block.
    type Solution: Send;
    /// The elements of a block that belong to neither of its halves.
    type Between;

    /// Divides a block in the middle. Returns the halves, and the elements between them.
    fn split<'a>(&self, block: Block<'a, T>) -> ([Block<'a, T>; 2], Self::Between);

    /// Solves a block of at most [`LEAF`] rows, which is overwritten.
    fn solve(&self, block: Block<'_, T>) -> Result<Self::Solution, Failure>;

    /// Joins the solutions of the halves of a block.
    fn join(&self, halves: [Self::Solution; 2], between: Self::Between) -> Result<Self::Solution, Failure>;
}

/// An iterator over the solutions of the tasks, in the order of the blocks.
type Done<'a, S> = &'a mut dyn Iterator<Item = Result<S, Failure>>;

/// Scales a matrix so that its largest magnitude is near 1. Otherwise products of four elements in the secular equation could overflow.
/// Returns the factor.
pub(super) fn scale_to_one<T: Float>((diagonal, beside): (&mut [T], &mut [T])) -> T {
    let scale = near_one(diagonal.iter().chain(beside.iter()));
    diagonal.iter_mut().chain(beside.iter_mut()).for_each(|x| *x = *x * scale);
    scale
}

/// Solves a problem for the matrix `(diagonal, beside)`, which is overwritten. Blocks of at most [`TASK`] rows are tasks of the thread
/// pool.
pub(super) fn divide<T: Float, P: Halves<T>>(
    problem: &P,
    (diagonal, beside): Block<'_, T>,
) -> Result<P::Solution, Failure> {
    let mut tasks = Vec::new();
    add_tasks(problem, (&mut *diagonal, &mut *beside), &mut tasks);
    let parallel = tasks.len() > 1;
    let mut done: Vec<Option<_>> = tasks.iter().map(|_| None).collect();
    let parts = tasks.into_iter().zip(&mut done).collect();
    each_part(parts, parallel, |_, (block, done)| *done = Some(conquer(problem, block, None)));
    conquer(problem, (diagonal, beside), Some(&mut done.into_iter().flatten()))
}

/// Divides `block` into blocks of at most [`TASK`] rows, and appends these to `tasks`.
fn add_tasks<'a, T: Float, P: Halves<T>>(problem: &P, block: Block<'a, T>, tasks: &mut Vec<Block<'a, T>>) {
    if block.0.len() <= TASK {
        tasks.push(block);
    } else {
        problem.split(block).0.into_iter().for_each(|half| add_tasks(problem, half, tasks));
    }
}

/// Returns the solution of a block. `done` yields the solutions of its blocks of at most [`TASK`] rows, if tasks have already solved them.
/// Without `done`, the function solves the whole block.
fn conquer<T: Float, P: Halves<T>>(
    problem: &P,
    block: Block<'_, T>,
    mut done: Option<Done<'_, P::Solution>>,
) -> Result<P::Solution, Failure> {
    let rows = block.0.len();
    if rows <= TASK
        && let Some(done) = done.as_mut().and_then(|done| done.next())
    {
        return done;
    }
    if rows <= LEAF {
        return problem.solve(block);
    }
    let ([first, second], between) = problem.split(block);
    let first = conquer(problem, first, done.as_mut().map(|done| &mut **done as Done<'_, P::Solution>))?;
    problem.join([first, conquer(problem, second, done)?], between)
}
