//! L-BFGS: steps along an approximation of Newton's direction, made from the last gradients.
//!
//! Nocedal, "Updating quasi-Newton matrices with limited storage" (1980); the two-loop recursion is algorithm 7.4 of Nocedal and
//! Wright, "Numerical optimization" (2006). The iteration is PyTorch's (<https://pytorch.org/docs/stable/generated/torch.optim.LBFGS.html>).

use std::collections::VecDeque;

use wengert_autograd::Gradients;
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Blas as _, Reductions as _};
use wengert_tensor::{Float, Tensor};

use crate::module::Module;
use crate::optim::archive::{Archive, Key, Resume};
use crate::optim::wolfe::{Point, strong_wolfe};
use crate::{Error, Result};

/// L-BFGS, for losses without noise: the whole data in each step. PyTorch: `torch.optim.LBFGS`.
///
/// A step is up to [`max_iter`](Self::max_iter) moves of the model, and evaluates the loss several times: it takes a function that
/// gives loss and gradients for the model as it is. All parameters that are not frozen are one vector; there are no groups, and
/// buffers stay as they are.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::Lbfgs;
///
/// // Rosenbrock's valley.
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
#[derive(Clone, Debug)]
pub struct Lbfgs<T: Float = f32> {
    lr: f64,
    max_iter: usize,
    max_eval: Option<usize>,
    tolerance_grad: f64,
    tolerance_change: f64,
    history_size: usize,
    strong_wolfe: bool,
    /// The moves so far.
    moves: u64,
    last: Option<Last<T>>,
    history: VecDeque<Pair<T>>,
    /// The scale of the first approximation of the inverse Hessian.
    scale: f64,
}

/// The last move.
#[derive(Clone, Debug)]
struct Last<T: Float> {
    direction: Tensor<T>,
    length: f64,
    /// The gradient before it.
    gradient: Tensor<T>,
}

/// A move `s`, and the change `y` of the gradient over it.
#[derive(Clone, Debug)]
struct Pair<T: Float> {
    y: Tensor<T>,
    s: Tensor<T>,
}

#[twins]
impl<T: Float> Lbfgs<T> {
    /// With learning rate `lr` (PyTorch's default: 1), up to 20 moves and 25 evaluations a step, a history of 100 moves, and no
    /// line search.
    pub fn new(lr: f64) -> Self {
        Lbfgs {
            lr,
            max_iter: 20,
            max_eval: None,
            tolerance_grad: 1e-7,
            tolerance_change: 1e-9,
            history_size: 100,
            strong_wolfe: false,
            moves: 0,
            last: None,
            history: VecDeque::new(),
            scale: 1.0,
        }
    }

    /// With up to `moves` in a step.
    #[must_use]
    pub fn max_iter(self, moves: usize) -> Self {
        Lbfgs { max_iter: moves, ..self }
    }

    /// With up to `evaluations` of the loss in a step; otherwise 5/4 of the moves.
    #[must_use]
    pub fn max_eval(self, evaluations: usize) -> Self {
        Lbfgs { max_eval: Some(evaluations), ..self }
    }

    /// With an end of the step where no element of the gradient exceeds `tolerance`.
    #[must_use]
    pub fn tolerance_grad(self, tolerance: f64) -> Self {
        Lbfgs { tolerance_grad: tolerance, ..self }
    }

    /// With an end of the step where neither loss nor parameters change by more than `tolerance`.
    #[must_use]
    pub fn tolerance_change(self, tolerance: f64) -> Self {
        Lbfgs { tolerance_change: tolerance, ..self }
    }

    /// With the last `moves` in the approximation.
    #[must_use]
    pub fn history_size(self, moves: usize) -> Self {
        Lbfgs { history_size: moves, ..self }
    }

    /// With a line search for the strong Wolfe conditions; the learning rate is where it begins. PyTorch:
    /// `line_search_fn="strong_wolfe"`.
    #[must_use]
    pub fn strong_wolfe(self) -> Self {
        Lbfgs { strong_wolfe: true, ..self }
    }

    /// One step; returns the loss before it. `evaluate` gives loss and gradients of the model as it is.
    ///
    /// # Errors
    ///
    /// If a setting is outside its range, or the loss does not depend on a parameter that is not frozen.
    pub fn try_step<M: Module<T>>(
        &mut self,
        model: &mut M,
        evaluate: impl FnMut(&M) -> (T, Gradients<T>),
    ) -> Result<f64> {
        let mut evaluate = evaluate;
        let [lr, grad, change] = [self.lr, self.tolerance_grad, self.tolerance_change];
        for (name, value) in [("learning rate", lr), ("tolerance_grad", grad), ("tolerance_change", change)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::Setting { name, value, expected: "a finite number, not negative" });
            }
        }
        let max_eval = self.max_eval.unwrap_or(self.max_iter * 5 / 4);
        let (original, mut gradient) = measured(model, &mut evaluate)?;
        let (mut loss, mut evaluations) = (original, 1);
        if gradient.numel() == 0 || largest(&gradient) <= self.tolerance_grad {
            return Ok(original);
        }
        for iteration in 1..=self.max_iter {
            self.moves += 1;
            let direction = self.direction(&gradient);
            let slope = gradient.dot(&direction).item().to_f64();
            let first = if self.moves == 1 { (1.0 / gradient.abs().sum(..).item().to_f64()).min(1.0) } else { 1.0 };
            let mut length = first * self.lr;
            let (before, loss_before) = (gradient.clone(), loss);
            if slope > -self.tolerance_change {
                self.last = Some(Last { direction, length, gradient: before });
                break;
            }
            let start = values(model);
            if self.strong_wolfe {
                let from = Point { length: 0.0, loss, gradient: gradient.clone(), slope };
                let mut at = |length: f64| {
                    set_values(model, &start.add(direction.mul(length)))?;
                    let (loss, gradient) = measured(model, &mut evaluate)?;
                    let slope = gradient.dot(&direction).item().to_f64();
                    Ok(Point { length, loss, gradient, slope })
                };
                let reach = largest(&direction);
                let limit = max_eval.saturating_sub(evaluations);
                let (found, used) = strong_wolfe(&mut at, from, length, reach, self.tolerance_change, limit)?;
                Point { length, loss, gradient, .. } = found;
                evaluations += used;
                set_values(model, &start.add(direction.mul(length)))?;
            } else {
                set_values(model, &start.add(direction.mul(length)))?;
                if iteration < self.max_iter {
                    (loss, gradient) = measured(model, &mut evaluate)?;
                    evaluations += 1;
                }
            }
            let moved = largest(&direction) * length;
            self.last = Some(Last { direction, length, gradient: before });
            if evaluations >= max_eval
                || largest(&gradient) <= self.tolerance_grad
                || moved.abs() <= self.tolerance_change
                || (loss - loss_before).abs() < self.tolerance_change
            {
                break;
            }
        }
        Ok(original)
    }

    /// The direction of the next move: the approximate inverse Hessian times the gradient, turned round.
    fn direction(&mut self, gradient: &Tensor<T>) -> Tensor<T> {
        if let Some(last) = &self.last {
            let (y, s) = (gradient.sub(&last.gradient), last.direction.mul(last.length));
            let curvature = y.dot(&s).item().to_f64();
            if curvature > 1e-10 {
                self.scale = curvature / y.dot(&y).item().to_f64();
                self.history.push_back(Pair { y, s });
                if self.history.len() > self.history_size {
                    self.history.pop_front();
                }
            }
        }
        let mut q = gradient.neg();
        let mut shares = Vec::with_capacity(self.history.len());
        for Pair { y, s } in self.history.iter().rev() {
            let share = s.dot(&q).item().to_f64() / y.dot(s).item().to_f64();
            q = q.sub(y.mul(share));
            shares.push(share);
        }
        let mut r = q.mul(self.scale);
        for (Pair { y, s }, share) in self.history.iter().zip(shares.into_iter().rev()) {
            let own = y.dot(&r).item().to_f64() / y.dot(s).item().to_f64();
            r = r.add(s.mul(share - own));
        }
        r
    }
}

/// Loss and gradient of the model as it is, the gradient as one vector over the parameters that are not frozen.
fn measured<T: Float, M: Module<T>>(
    model: &M,
    evaluate: &mut impl FnMut(&M) -> (T, Gradients<T>),
) -> Result<(f64, Tensor<T>)> {
    let (loss, gradients) = evaluate(model);
    let (mut elements, mut names) = (Vec::new(), Vec::new());
    for (path, parameter) in model.named_parameters().into_iter().filter(|(_, parameter)| !parameter.is_frozen()) {
        match gradients.get(parameter) {
            Some(gradient) => elements.extend(gradient.iter()),
            None => names.push(path),
        }
    }
    if !names.is_empty() {
        return Err(Error::Unreached { names });
    }
    let count = elements.len();
    Ok((loss.to_f64(), Tensor::try_from_vec(elements, [count])?))
}

/// The parameters that are not frozen, as one vector.
fn values<T: Float>(model: &impl Module<T>) -> Tensor<T> {
    let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
    let elements: Vec<T> = trained.flat_map(|parameter| parameter.value.to_vec()).collect();
    let count = elements.len();
    Tensor::from_vec(elements, [count])
}

/// Sets the parameters that are not frozen.
fn set_values<T: Float>(model: &mut impl Module<T>, vector: &Tensor<T>) -> Result<()> {
    let elements = vector.try_to_vec()?;
    let mut rest = &elements[..];
    for parameter in model.parameters_mut().into_iter().filter(|parameter| !parameter.is_frozen()) {
        let (own, others) = rest.split_at(parameter.value.numel());
        parameter.value.make_mut().copy_from_slice(own);
        rest = others;
    }
    Ok(())
}

/// The size of the largest element; NaN if one is.
fn largest<T: Float>(vector: &Tensor<T>) -> f64 {
    vector.iter().fold(0.0, |largest: f64, x| {
        let size = x.to_f64().abs();
        if size > largest || size.is_nan() { size } else { largest }
    })
}

/// The settings, the history and the last move, whatever parameters they are of.
impl<T: Float> Resume<T> for Lbfgs<T> {
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive<T>) {
        let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
        let vector = Tensor::zeros([trained.map(|parameter| parameter.value.numel()).sum::<usize>()]);
        let setting = |name: &str| Key::Setting(name.to_owned());
        let state = |name: &str| Key::State(name.to_owned());
        archive.number(setting("lr"), &mut self.lr);
        archive.number(setting("tolerance_grad"), &mut self.tolerance_grad);
        archive.number(setting("tolerance_change"), &mut self.tolerance_change);
        archive.flag(setting("strong_wolfe"), &mut self.strong_wolfe);
        archive.integer(state("n_iter"), &mut self.moves);
        archive.number(state("H_diag"), &mut self.scale);
        let mut pairs = self.history.len() as u64;
        archive.integer(state("pairs"), &mut pairs);
        if archive.is_reading() {
            let pair = || Pair { y: vector.clone(), s: vector.clone() };
            // No more than there can be: a file may say any number.
            self.history = (0..pairs.min(self.history_size as u64)).map(|_| pair()).collect();
            let last = || Last { direction: vector.clone(), length: 0.0, gradient: vector.clone() };
            self.last = (self.moves > 0).then(last);
        }
        for (number, Pair { y, s }) in self.history.iter_mut().enumerate() {
            archive.tensor(state(&format!("old_dirs.{number}")), y);
            archive.tensor(state(&format!("old_stps.{number}")), s);
        }
        if let Some(Last { direction, length, gradient }) = &mut self.last {
            archive.tensor(state("d"), direction);
            archive.number(state("t"), length);
            archive.tensor(state("prev_flat_grad"), gradient);
        }
    }
}
