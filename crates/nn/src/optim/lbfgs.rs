//! L-BFGS, an optimiser that approximates Newton's direction from the last gradients.
//!
//! Nocedal, "Updating quasi-Newton matrices with limited storage" (1980). The method that computes the direction, a two-loop recursion, is
//! algorithm 7.4 of Nocedal and Wright, "Numerical optimization" (2006). The iteration follows PyTorch
//! (<https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html>).

use std::collections::VecDeque;

use wengert_autograd::transforms::try_infer;
use wengert_autograd::{Gradients, Parameter, Tape, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Blas as _, Reductions as _};
use wengert_tensor::{Float, Tensor};

use crate::module::Module;
use crate::optim::archive::{Archive, Key, Resume};
use crate::optim::flat::{loss_and_gradient, max_abs, set_trainable_from_vector, trainable_to_vector};
use crate::optim::wolfe::{LineSearch, Point};
use crate::{Error, Result};

/// L-BFGS, an optimiser for losses without noise: each step needs the loss of the whole data set. PyTorch: `torch.optim.LBFGS`.
///
/// A step makes up to [`max_iter`](Self::max_iter) moves of the parameters and evaluates the loss several times. So a step takes a function that
/// computes the loss and the gradients of the model. All parameters that are not frozen form one vector, and there are no groups. The model's
/// buffers do not change.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::Lbfgs;
///
/// // Rosenbrock's function, whose minimum is at [1, 1].
/// let mut p = Parameter::new(Tensor::from([-1.2f64, 1.0]));
/// let mut lbfgs = Lbfgs::new(1.0).strong_wolfe();
/// for _ in 0..5 {
///     lbfgs.step(&mut p, |p| {
///         Tape::new().value_and_gradients(|tape| {
///             let (x, y) = (tape.parameter(p).select(0, 0), tape.parameter(p).select(0, 1));
///             (y - x.square()).square() * 100.0 + (1.0 - x).square()
///         })
///     });
/// }
/// assert!(p.value.iter().all(|x| (x - 1.0).abs() < 1e-3));
/// ```
#[doc(alias = "LBFGS")]
#[derive(Clone, Debug)]
pub struct Lbfgs<T: Float = f32> {
    lr: f64,
    max_iter: usize,
    max_eval: Option<usize>,
    tolerance_grad: f64,
    tolerance_change: f64,
    history_size: usize,
    strong_wolfe: bool,
    /// The number of directions that were computed in all steps so far. A step does not move along a direction in which the loss hardly
    /// falls.
    n_iter: u64,
    last: Option<LastMove<T>>,
    history: VecDeque<CurvaturePair<T>>,
    /// The approximation of the inverse Hessian starts from the identity matrix times this factor.
    h_diag: f64,
}

/// The last move of the parameters, `length` times `direction`. If the loss hardly falls along a direction, a step ends before it makes the
/// move. The planned move is stored nevertheless, as in PyTorch.
#[derive(Clone, Debug)]
struct LastMove<T: Float> {
    direction: Tensor<T>,
    length: f64,
    /// The gradient at the parameters before the move.
    gradient: Tensor<T>,
}

/// A move `s` of the parameters, and the change `y` of the gradient: the gradient from which the next direction is computed, minus the
/// gradient before the move. `s` may also be a planned move; see [`LastMove`].
#[derive(Clone, Debug)]
struct CurvaturePair<T: Float> {
    y: Tensor<T>,
    s: Tensor<T>,
}

/// A direction in the space of the parameters, and the derivative of the loss along the direction.
struct Direction<T: Float> {
    vector: Tensor<T>,
    slope: f64,
}

/// The loss and the gradient at the model's current parameters, and the number of evaluations in this step. Without a line search, move
/// number `max_iter` of a step is not evaluated: after it, the loss and gradient are from before this move.
struct Evaluation<T: Float> {
    loss: f64,
    gradient: Tensor<T>,
    n_evaluations: usize,
}

#[twins]
impl<T: Float> Lbfgs<T> {
    /// Returns an optimiser with learning rate `lr` (PyTorch's default: 1), a history of 100 moves, and no line search. A step makes at most
    /// 20 moves and 25 evaluations of the loss.
    pub fn new(lr: f64) -> Self {
        Lbfgs {
            lr,
            max_iter: 20,
            max_eval: None,
            tolerance_grad: 1e-7,
            tolerance_change: 1e-9,
            history_size: 100,
            strong_wolfe: false,
            n_iter: 0,
            last: None,
            history: VecDeque::new(),
            h_diag: 1.0,
        }
    }

    /// Sets the largest number of moves of the parameters in a step; 20 by default.
    #[must_use]
    pub fn max_iter(self, moves: usize) -> Self {
        Lbfgs { max_iter: moves, ..self }
    }

    /// Sets the largest number of evaluations of the loss in a step; by default 5/4 of [`max_iter`](Self::max_iter). Without a line search, a
    /// number below 2 counts as 2. With a line search, a number below 1 counts as 1, and the search may make one evaluation more.
    #[must_use]
    pub fn max_eval(self, evaluations: usize) -> Self {
        Lbfgs { max_eval: Some(evaluations), ..self }
    }

    /// Sets the tolerance of the gradient; 1e-7 by default. A step ends when no element of the gradient exceeds `tolerance` in absolute value.
    #[must_use]
    pub fn tolerance_grad(self, tolerance: f64) -> Self {
        Lbfgs { tolerance_grad: tolerance, ..self }
    }

    /// Sets the tolerance of a move; 1e-9 by default. A step ends when a move changes the loss by less than `tolerance`, or changes every
    /// parameter by at most `tolerance`. It also ends when the derivative of the loss along the next direction is above -`tolerance`.
    #[must_use]
    pub fn tolerance_change(self, tolerance: f64) -> Self {
        Lbfgs { tolerance_change: tolerance, ..self }
    }

    /// Sets the largest number of last moves from which the inverse Hessian is approximated; 100 by default.
    #[must_use]
    pub fn history_size(self, moves: usize) -> Self {
        Lbfgs { history_size: moves, ..self }
    }

    /// Searches along each direction for a point that satisfies the strong Wolfe conditions. The first length that a search tries is the
    /// learning rate. For the very first direction, this rate is divided by the sum of the gradient's absolute values if the sum is above
    /// 1.
    ///
    /// The evaluations of a search count towards [`max_eval`](Self::max_eval), as in PyTorch 2.10. Older versions allow 25 in each search,
    /// so their results differ after a long search. The coefficients of a direction are quotients in f64, of dot products in the element
    /// type. PyTorch: `line_search_fn="strong_wolfe"`.
    ///
    /// A rounding error grows from move to move, most of all along directions in which the loss hardly changes. So in f32 the parameters
    /// may differ from PyTorch's, for example by 0.1 after 100 moves, at about the same loss. Neither result is the right one: if one
    /// parameter starts at the next number of f32, the result of either library changes as much. Use f64 if the parameters matter.
    #[must_use]
    pub fn strong_wolfe(self) -> Self {
        Lbfgs { strong_wolfe: true, ..self }
    }

    /// Makes one step, and returns the loss before the step. `evaluate` computes the loss and the gradients of the model.
    ///
    /// # Errors
    ///
    /// If a setting is outside its range, or the loss does not depend on a parameter that is not frozen. Also if the parameters that are not
    /// frozen have another number of elements than in the last step, or there is not enough memory.
    pub fn try_step<M: Module<T>>(
        &mut self,
        model: &mut M,
        evaluate: impl FnMut(&M) -> (T, Gradients<T>),
    ) -> Result<f64> {
        let mut evaluate = evaluate;
        self.make_moves(model, |model| Ok(evaluate(model)))
    }

    /// Makes one [`step`](Self::step) from `start` that minimizes `f`, a function of one tensor. Returns the point that the step reaches, and
    /// the value of `f` at this point.
    ///
    /// Set [`max_iter`](Self::max_iter) high enough to reach a minimum. A further call that starts from the returned point continues with the
    /// same history of moves. SciPy: `minimize(f, start, jac=True)`. `ravel` of `wengert::autograd::transforms` makes one vector of several
    /// tensors.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::Lbfgs;
    ///
    /// let target = Tensor::from([3.0, -1.0]);
    /// let (point, value) = Lbfgs::new(1.0).strong_wolfe().minimize(|x| (x - &target).square().sum(..), &Tensor::zeros([2]));
    /// assert!((point - target).abs().amax(..).item() < 1e-9 && value < 1e-18);
    /// ```
    ///
    /// # Errors
    ///
    /// If a setting is outside its range, or the function fails: its result is not one number, does not depend on its
    /// argument, or an operation in the function fails. Also if `start` has another number of elements than in the last
    /// step, or there is not enough memory.
    pub fn try_minimize(
        &mut self,
        f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        start: &Tensor<T>,
    ) -> Result<(Tensor<T>, T)> {
        let mut point = Parameter::new(start.clone());
        self.make_moves(&mut point, |point| Ok(Tape::new().try_value_and_gradients(|tape| f(tape.parameter(point)))?))?;
        let value = try_infer(f, &point.value)?.try_item()?;
        Ok((point.value, value))
    }

    /// Makes the moves of one step, and returns the loss before the first move.
    fn make_moves<M: Module<T>>(
        &mut self,
        model: &mut M,
        mut evaluate: impl FnMut(&M) -> Result<(T, Gradients<T>)>,
    ) -> Result<f64> {
        self.check()?;
        let max_eval = self.evaluation_limit();
        let (loss_at_start, gradient) = loss_and_gradient(model, &mut evaluate)?;
        let mut current = Evaluation { loss: loss_at_start, gradient, n_evaluations: 1 };
        if current.gradient.numel() == 0 || max_abs(&current.gradient) <= self.tolerance_grad {
            return Ok(loss_at_start);
        }
        self.check_numel(current.gradient.numel())?;
        for iteration in 1..=self.max_iter {
            self.n_iter += 1;
            let vector = self.next_direction(&current.gradient)?;
            let slope = current.gradient.try_dot(&vector)?.item().to_f64();
            let mut length = self.lr;
            if self.n_iter == 1 {
                length *= (1.0 / current.gradient.try_abs()?.try_sum(..)?.item().to_f64()).min(1.0);
            }
            let (gradient_before, loss_before) = (current.gradient.clone(), current.loss);
            if slope > -self.tolerance_change {
                self.last = Some(LastMove { direction: vector, length, gradient: gradient_before });
                break;
            }
            let direction = Direction { vector, slope };
            length = if self.strong_wolfe {
                self.line_search(model, &mut evaluate, &direction, length, &mut current)?
            } else {
                set_trainable_from_vector(
                    model,
                    &trainable_to_vector(model)?.try_add(direction.vector.try_mul(length)?)?,
                )?;
                if iteration < self.max_iter {
                    (current.loss, current.gradient) = loss_and_gradient(model, &mut evaluate)?;
                    current.n_evaluations += 1;
                }
                length
            };
            let distance = max_abs(&direction.vector) * length;
            self.last = Some(LastMove { direction: direction.vector, length, gradient: gradient_before });
            if current.n_evaluations >= max_eval
                || max_abs(&current.gradient) <= self.tolerance_grad
                || distance.abs() <= self.tolerance_change
                || (current.loss - loss_before).abs() < self.tolerance_change
            {
                break;
            }
        }
        Ok(loss_at_start)
    }

    /// Returns the largest number of evaluations of the loss in a step.
    fn evaluation_limit(&self) -> usize {
        self.max_eval.unwrap_or(self.max_iter.saturating_mul(5) / 4)
    }

    /// Returns an error unless the learning rate and the tolerances are finite and not negative.
    fn check(&self) -> Result<()> {
        let [lr, grad, change] = [self.lr, self.tolerance_grad, self.tolerance_change];
        for (name, value) in [("learning rate", lr), ("tolerance_grad", grad), ("tolerance_change", change)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Setting { name, value, expected: "a finite number, not negative" });
            }
        }
        Ok(())
    }

    /// Returns an error unless the stored vectors of earlier moves have `numel` elements, which is the length of the current gradient.
    fn check_numel(&self, numel: usize) -> Result<()> {
        match self.last.as_ref().map(|last| last.gradient.numel()).filter(|&last| last != numel) {
            Some(last) => Err(Error::Argument(format!(
                "the parameters that are not frozen have {numel} elements, but they had {last} in the last step: use a new \
                 `Lbfgs` for other parameters"
            ))),
            None => Ok(()),
        }
    }

    /// Moves the model along `direction` to the point that the line search finds. Returns the length of the move. Sets
    /// `current` to the loss and gradient at this point, and adds the evaluations of the search to its count.
    fn line_search<M: Module<T>>(
        &self,
        model: &mut M,
        evaluate: &mut impl FnMut(&M) -> Result<(T, Gradients<T>)>,
        direction: &Direction<T>,
        length: f64,
        current: &mut Evaluation<T>,
    ) -> Result<f64> {
        let start = trainable_to_vector(model)?;
        let search = LineSearch {
            start: Point {
                length: 0.0,
                loss: current.loss,
                gradient: current.gradient.clone(),
                slope: direction.slope,
            },
            direction_max_abs: max_abs(&direction.vector),
            tolerance: self.tolerance_change,
            max_evaluations: self.evaluation_limit().saturating_sub(current.n_evaluations),
        };
        let mut evaluate_at = |length: f64| {
            set_trainable_from_vector(model, &start.try_add(direction.vector.try_mul(length)?)?)?;
            let (loss, gradient) = loss_and_gradient(model, evaluate)?;
            let slope = gradient.try_dot(&direction.vector)?.item().to_f64();
            Ok(Point { length, loss, gradient, slope })
        };
        let (found, n_evaluations) = search.strong_wolfe(&mut evaluate_at, length)?;
        let Point { length, loss, gradient, .. } = found;
        *current = Evaluation { loss, gradient, n_evaluations: current.n_evaluations + n_evaluations };
        set_trainable_from_vector(model, &start.try_add(direction.vector.try_mul(length)?)?)?;
        Ok(length)
    }

    /// Returns the direction of the next move, which is minus the approximate inverse Hessian times the gradient.
    /// Before this, adds the last move to the history and updates `h_diag`, if the product y · s of the move is above
    /// 1e-10.
    fn next_direction(&mut self, gradient: &Tensor<T>) -> Result<Tensor<T>> {
        if let Some(last) = &self.last {
            let (y, s) = (gradient.try_sub(&last.gradient)?, last.direction.try_mul(last.length)?);
            let curvature = y.try_dot(&s)?.item().to_f64();
            if curvature > 1e-10 {
                self.h_diag = curvature / y.try_dot(&y)?.item().to_f64();
                self.history.push_back(CurvaturePair { y, s });
                if self.history.len() > self.history_size {
                    self.history.pop_front();
                }
            }
        }
        let mut q = gradient.try_neg()?;
        let mut coefficients = Vec::with_capacity(self.history.len());
        for CurvaturePair { y, s } in self.history.iter().rev() {
            let coefficient = s.try_dot(&q)?.item().to_f64() / y.try_dot(s)?.item().to_f64();
            q = q.try_sub(y.try_mul(coefficient)?)?;
            coefficients.push(coefficient);
        }
        let mut r = q.try_mul(self.h_diag)?;
        for (CurvaturePair { y, s }, coefficient) in self.history.iter().zip(coefficients.into_iter().rev()) {
            let own = y.try_dot(&r)?.item().to_f64() / y.try_dot(s)?.item().to_f64();
            r = r.try_add(s.try_mul(coefficient - own)?)?;
        }
        Ok(r)
    }
}

impl<T: Float> Lbfgs<T> {
    /// Saves or restores the largest numbers of moves, evaluations and pairs. Files of earlier versions lack these numbers. If such a file is
    /// read, the optimiser keeps its own.
    fn archive_limits(&mut self, archive: &mut Archive) {
        let setting = |name: &str| Key::Setting(name.to_owned());
        if archive.is_restoring() && !archive.contains(&setting("max_iter")) {
            return;
        }
        let mut integer = |name: &str, value: &mut usize| {
            let mut number = *value as u64;
            archive.integer(setting(name), &mut number);
            *value = usize::try_from(number).unwrap_or(usize::MAX);
        };
        integer("max_iter", &mut self.max_iter);
        integer("history_size", &mut self.history_size);
        // Without a limit on the evaluations, the file has no entry.
        let has_limit =
            if archive.is_restoring() { archive.contains(&setting("max_eval")) } else { self.max_eval.is_some() };
        self.max_eval = has_limit.then(|| {
            let mut number = self.max_eval.unwrap_or_default() as u64;
            archive.integer(setting("max_eval"), &mut number);
            usize::try_from(number).unwrap_or(usize::MAX)
        });
    }
}

/// Saves the settings, `n_iter`, `h_diag`, the history and the last move. Each saved tensor is a vector over all parameters that are not
/// frozen.
impl<T: Float> Resume<T> for Lbfgs<T> {
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive) {
        let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
        let vector = match Tensor::try_zeros([trained.map(|parameter| parameter.value.numel()).sum::<usize>()]) {
            Ok(vector) => vector,
            Err(error) => return archive.fail(error.into()),
        };
        let setting = |name: &str| Key::Setting(name.to_owned());
        let state = |name: &str| Key::State(name.to_owned());
        archive.number(setting("lr"), &mut self.lr);
        archive.number(setting("tolerance_grad"), &mut self.tolerance_grad);
        archive.number(setting("tolerance_change"), &mut self.tolerance_change);
        archive.flag(setting("strong_wolfe"), &mut self.strong_wolfe);
        self.archive_limits(archive);
        archive.integer(state("n_iter"), &mut self.n_iter);
        archive.number(state("H_diag"), &mut self.h_diag);
        let mut pairs = self.history.len() as u64;
        archive.integer(state("pairs"), &mut pairs);
        if archive.is_restoring() {
            let pair = || CurvaturePair { y: vector.clone(), s: vector.clone() };
            // The number of pairs was read from a file that may be damaged, so it is limited to the pairs in the file.
            let is_stored = |number: &u64| archive.contains(&state(&format!("old_dirs.{number}")));
            self.history = (0..pairs).take_while(is_stored).map(|_| pair()).collect();
            let last = || LastMove { direction: vector.clone(), length: 0.0, gradient: vector.clone() };
            self.last = (self.n_iter > 0).then(last);
        }
        for (number, CurvaturePair { y, s }) in self.history.iter_mut().enumerate() {
            archive.tensor(state(&format!("old_dirs.{number}")), y);
            archive.tensor(state(&format!("old_stps.{number}")), s);
        }
        let surplus = self.history.len().saturating_sub(self.history_size);
        self.history.drain(..surplus);
        if let Some(LastMove { direction, length, gradient }) = &mut self.last {
            archive.tensor(state("d"), direction);
            archive.number(state("t"), length);
            archive.tensor(state("prev_flat_grad"), gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wengert_autograd::formula;
    use wengert_tensor::ops::{Activations as _, Functions as _, Views as _};

    #[test]
    fn minimize_is_a_step_of_a_parameter() {
        let valley = formula!(|p| {
            let (x, y) = (p.select(0, 0), p.select(0, 1));
            (y - x.square()).square() * 100.0 + (1.0 - x).square()
        });
        let start = Tensor::from([-1.2f64, 1.0]);
        let (mut first, mut second) = (Lbfgs::new(1.0).strong_wolfe(), Lbfgs::new(1.0).strong_wolfe());
        let (mut parameter, mut point) = (Parameter::new(start.clone()), start);
        for _ in 0..3 {
            first.step(&mut parameter, |p| Tape::new().value_and_gradients(|tape| valley(tape.parameter(p))));
            let value;
            (point, value) = second.minimize(valley, &point);
            assert_eq!(point, parameter.value);
            assert_eq!(value, try_infer(valley, &point).unwrap().item());
        }
    }

    #[test]
    fn minimize_returns_the_errors_of_the_function() {
        let start = Tensor::from([1.0f64, 2.0]);
        let several = Lbfgs::new(1.0).try_minimize(|x| x * 2.0, &start);
        assert!(matches!(several, Err(Error::Autograd(_))), "{several:?}");
        let constant = Lbfgs::new(1.0).try_minimize(|x| x.tape().constant(1.0), &start);
        assert!(matches!(constant, Err(Error::Autograd(_))), "{constant:?}");
        let rate = Lbfgs::new(f64::NAN).try_minimize(|x| x.sum(..), &start);
        assert!(matches!(rate, Err(Error::Setting { .. })), "{rate:?}");
    }

    #[test]
    fn another_number_of_trained_elements_than_in_the_last_step_is_an_error() {
        let mut model = vec![Parameter::new(Tensor::from([1.0f64, 2.0])), Parameter::new(Tensor::from([3.0]))];
        let loss = |model: &Vec<Parameter<f64>>| {
            Tape::new().value_and_gradients(|tape| {
                tape.parameter(&model[0]).square().sum(..) + tape.parameter(&model[1]).square().sum(..)
            })
        };
        let mut lbfgs = Lbfgs::new(0.1).max_iter(2);
        lbfgs.step(&mut model, loss);
        let before = model.to_vector();
        model.freeze("1");
        let text = lbfgs.try_step(&mut model, loss).unwrap_err().to_string();
        assert!(text.contains("2 elements") && text.contains("3 in the last step"), "{text}");
        assert_eq!(model.to_vector(), before);
        model.unfreeze("1");
        let first = lbfgs.step(&mut model, loss);
        assert!(lbfgs.step(&mut model, loss) < first);
    }

    /// Returns the tensor of `numbers`, each rounded to the element type.
    fn rounded<T: Float>(numbers: impl IntoIterator<Item = f64>) -> Tensor<T> {
        Tensor::from(numbers.into_iter().map(T::from_f64).collect::<Vec<T>>())
    }

    /// The mean squared error of a network with six hidden neurons at 32 points of a sine. Its 19 parameters are strongly correlated.
    fn sine<T: Float>(p: Var<'_, T>) -> Var<'_, T> {
        let points = || (0..32).map(|i| f64::from(i) / 16.0 - 1.0);
        let (x, y) = (rounded::<T>(points()), rounded::<T>(points().map(|x| (3.0 * x).sin())));
        let hidden = (p.slice(0, 0..6) * x.unsqueeze(1) + p.slice(0, 6..12)).tanh();
        ((hidden * p.slice(0, 12..18)).sum(1) + p.slice(0, 18..19) - y).square().mean(..)
    }

    /// The loss of a logistic regression with two inputs that differ by at most 0.01.
    fn logistic<T: Float>(p: Var<'_, T>) -> Var<'_, T> {
        let first = |i: i32| (f64::from(i) * 0.7).sin();
        let x = rounded::<T>((0..40).flat_map(|i| [first(i), first(i) + 0.01 * (f64::from(i) * 1.3).cos(), 1.0]));
        let signs = rounded::<T>((0..40).map(|i| (first(i) + (f64::from(i * i) * 0.37).sin()).signum()));
        -((p * x.reshape([40, 3])).sum(1) * signs).logsigmoid().mean(..)
    }

    fn rosenbrock<T: Float>(p: Var<'_, T>) -> Var<'_, T> {
        let (x, y) = (p.select(0, 0), p.select(0, 1));
        (y - x.square()).square() * 100.0 + (1.0 - x).square()
    }

    /// The squared error of eight linear equations whose matrix is a part of the Hilbert matrix.
    fn hilbert<T: Float>(p: Var<'_, T>) -> Var<'_, T> {
        let row = |i: i32| (0..4).map(move |j| 1.0 / f64::from(i + j + 1));
        let right = rounded::<T>((0..8).map(|i| row(i).sum::<f64>() + 0.01 * (f64::from(i) * 2.0).cos()));
        ((p * rounded::<T>((0..8).flat_map(row)).reshape([8, 4])).sum(1) - right).square().sum(..)
    }

    /// Makes `steps` steps, and returns the parameters in f64.
    fn fit<T: Float>(f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T> + Copy, start: &[f64], steps: usize) -> Tensor<f64> {
        let mut lbfgs = Lbfgs::new(1.0).strong_wolfe();
        let mut point = rounded::<T>(start.iter().copied());
        for _ in 0..steps {
            point = lbfgs.minimize(f, &point).0;
        }
        rounded(point.iter().map(T::to_f64))
    }

    /// Checks that the results in f32 and f64 have nearly equal losses, computed in f64, although their parameters differ.
    #[test]
    fn f32_reaches_the_loss_of_f64() {
        fn check(
            name: &str,
            [single, double]: [Tensor<f64>; 2],
            loss: impl for<'t> Fn(Var<'t, f64>) -> Var<'t, f64> + Copy,
        ) {
            let [above, least] = [&single, &double].map(|p| try_infer(loss, p).unwrap().item());
            let distance = (&single - &double).abs().amax(..).item();
            assert!((above - least).abs() < 1e-8, "{name}: {above} instead of {least}");
            assert!(distance > 1e-7, "{name}: {single} and {double} are equal");
        }
        let (zeros, valley) = ([0.0; 4], [-1.2, 1.0]);
        check("logistic", [fit::<f32>(logistic, &zeros[1..], 5), fit::<f64>(logistic, &zeros[1..], 5)], logistic);
        check("least squares", [fit::<f32>(hilbert, &zeros, 5), fit::<f64>(hilbert, &zeros, 5)], hilbert);
        check("Rosenbrock", [fit::<f32>(rosenbrock, &valley, 5), fit::<f64>(rosenbrock, &valley, 5)], rosenbrock);
    }

    /// Checks that the smallest change of one parameter at the start changes the result in f32 by more than 0.01. The result in f64 changes
    /// by less than a hundredth of this change. The losses of all results are small.
    #[test]
    fn a_rounding_error_grows_from_move_to_move() {
        let start: Vec<f64> = (0..19).map(|i| (f64::from(i) * 1.7 + 0.3).sin()).collect();
        let (mut single, mut double) = (start.clone(), start.clone());
        single[0] = (start[0] as f32).next_up().into();
        double[0] = start[0].next_up();
        let in_f32 = [fit::<f32>(sine, &start, 5), fit::<f32>(sine, &single, 5)];
        let in_f64 = [fit::<f64>(sine, &start, 5), fit::<f64>(sine, &double, 5)];
        for point in in_f32.iter().chain(&in_f64) {
            let loss = try_infer(sine, point).unwrap().item();
            assert!(loss < 5e-5, "{loss}");
        }
        let [single, double] = [in_f32, in_f64].map(|[first, second]| (first - second).abs().amax(..).item());
        assert!(single > 0.01 && double < 0.01 * single, "{single} {double}");
    }
}
