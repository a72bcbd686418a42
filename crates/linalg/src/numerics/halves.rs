//! Divide and conquer for symmetric tridiagonal and bidiagonal matrices. Both are stored as two vectors: the diagonal, and the off-diagonal
//! elements. A matrix is divided until its blocks are small. Then the solutions of neighbouring blocks are joined.
//!
//! `symmetric_halves` and `bidiagonal_halves` say how a block is divided and how two solutions are joined. This file knows neither.

use wengert_tensor::{Float, each_part};

use super::arithmetic::scale_near_one;
use super::failure::Failure;

/// The largest number of rows of a block that is not divided. For larger blocks, division is faster than the iteration for small blocks.
pub(super) const LEAF_ROWS: usize = 32;

/// The largest number of rows of a block that is one task of the thread pool.
const TASK_ROWS: usize = 128;

/// The diagonal and the off-diagonal elements of a block.
pub(super) type Block<'a, T> = (&'a mut [T], &'a mut [T]);

/// A problem that is divided into halves.
pub(super) trait DivideAndConquer<T: Float>: Sync {
    /// The solution for a block.
    type Solution: Send;
    /// The elements of a block that belong to neither of its halves.
    type Coupling;

    /// Divides a block in the middle. Returns the halves, and the elements between them.
    fn split<'a>(&self, block: Block<'a, T>) -> ([Block<'a, T>; 2], Self::Coupling);

    /// Solves a block of at most [`LEAF_ROWS`] rows, which is overwritten.
    fn solve(&self, block: Block<'_, T>) -> Result<Self::Solution, Failure>;

    /// Joins the solutions of the halves of a block.
    fn join(&self, halves: [Self::Solution; 2], coupling: Self::Coupling) -> Result<Self::Solution, Failure>;
}

/// An iterator over the solutions of the tasks, in the order of the blocks.
type Solutions<'a, S> = &'a mut dyn Iterator<Item = Result<S, Failure>>;

/// Scales a matrix so that its largest magnitude is near 1. Otherwise products of four elements in the secular equation could overflow.
/// Returns the factor.
pub(super) fn scale_to_one<T: Float>((diagonal, off_diagonal): (&mut [T], &mut [T])) -> T {
    let scale = scale_near_one(diagonal.iter().chain(off_diagonal.iter()));
    diagonal.iter_mut().chain(off_diagonal.iter_mut()).for_each(|x| *x = *x * scale);
    scale
}

/// Solves a problem for the matrix `(diagonal, off_diagonal)`, which is overwritten. Blocks of at most [`TASK_ROWS`] rows are tasks of the
/// thread pool.
pub(super) fn divide_and_conquer<T: Float, P: DivideAndConquer<T>>(
    problem: &P,
    (diagonal, off_diagonal): Block<'_, T>,
) -> Result<P::Solution, Failure> {
    let mut tasks = Vec::new();
    add_tasks(problem, (&mut *diagonal, &mut *off_diagonal), &mut tasks);
    let parallel = tasks.len() > 1;
    let mut solutions: Vec<Option<_>> = tasks.iter().map(|_| None).collect();
    let parts = tasks.into_iter().zip(&mut solutions).collect();
    each_part(parts, parallel, |_, (block, solution)| *solution = Some(conquer(problem, block, None)));
    conquer(problem, (diagonal, off_diagonal), Some(&mut solutions.into_iter().flatten()))
}

/// Divides `block` into blocks of at most [`TASK_ROWS`] rows, and appends these to `tasks`.
fn add_tasks<'a, T: Float, P: DivideAndConquer<T>>(problem: &P, block: Block<'a, T>, tasks: &mut Vec<Block<'a, T>>) {
    if block.0.len() <= TASK_ROWS {
        tasks.push(block);
    } else {
        problem.split(block).0.into_iter().for_each(|half| add_tasks(problem, half, tasks));
    }
}

/// Returns the solution of a block. `solutions` yields the solutions of its blocks of at most [`TASK_ROWS`] rows, if tasks have already
/// solved them. Without `solutions`, the function solves the whole block.
fn conquer<T: Float, P: DivideAndConquer<T>>(
    problem: &P,
    block: Block<'_, T>,
    mut solutions: Option<Solutions<'_, P::Solution>>,
) -> Result<P::Solution, Failure> {
    let rows = block.0.len();
    if rows <= TASK_ROWS
        && let Some(solution) = solutions.as_mut().and_then(|solutions| solutions.next())
    {
        return solution;
    }
    if rows <= LEAF_ROWS {
        return problem.solve(block);
    }
    let ([first, second], coupling) = problem.split(block);
    let first =
        conquer(problem, first, solutions.as_mut().map(|solutions| &mut **solutions as Solutions<'_, P::Solution>))?;
    problem.join([first, conquer(problem, second, solutions)?], coupling)
}
