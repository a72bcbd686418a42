//! The optimiser Adafactor.
//!
//! Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018), in PyTorch's form
//! (<https://pytorch.org/docs/stable/generated/torch.optim.Adafactor.html>). The parameter P has the gradient G at step t; both are
//! matrices. The states are the vectors R and C. rms is the root mean square of the elements of a matrix. The settings eps₁ and eps₂ are
//! `eps`, d is `clip`:
//!
//! ```text
//! s ← t^beta2_decay
//! R ← R + s (mean of G² over each row - R),   C ← C + s (mean of G² over each column - C)
//! V ← R C / max(mean(R), eps₁)
//! U ← G / √max(V, eps₁²),   U ← U / max(1, rms(U) / d)
//! P ← (1 - lr · weight_decay) P - max(eps₂, rms(P)) · min(lr, 1/√t) · U
//! ```

use wengert_tensor::ops::{Arithmetic as _, Clamp as _, Functions as _, Products as _, Reductions as _};
use wengert_tensor::{DType, Float, Shape, Tensor};

use crate::optim::common::{Common, States, common_accessors, lerp};
use crate::optim::optimizer::Optimizer;
use crate::optim::setting::{Range, Setting};
use crate::{Error, Result};

/// Adafactor: an adaptive optimiser whose states need little memory. For a matrix of r rows and c columns it keeps r + c numbers, while
/// [`Adam`](crate::Adam) keeps 2 r c. PyTorch: `torch.optim.Adafactor`.
///
/// For parameters of several dimensions, the last two dimensions are the rows and columns. For vectors and scalars, the optimiser keeps a number
/// for each element. The weight decay is always decoupled. The optimiser cannot be sharded: a step depends on whole parameters.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
/// use wengert::autograd::{prelude::*, transforms::grad};
/// use wengert::nn::{Adafactor, Optimizer};
///
/// let (mut w, mut optimizer) = (Tensor::from([[4.0f64, -2.0], [1.0, 3.0]]), Adafactor::new(0.1));
/// for _ in 0..1000 {
///     let gradients = grad(|[w]| w.square().sum(..), [&w]);
///     optimizer.step_tensors([&mut w], &gradients);
/// }
/// assert!(w.iter().all(|w| w.abs() < 0.1));
/// ```
#[derive(Clone, Debug)]
pub struct Adafactor<T: Float = f32> {
    beta2_decay: f64,
    eps: [f64; 2],
    clip: f64,
    common: Common<Self, T>,
}

impl<T: Float> Adafactor<T> {
    /// Returns an optimiser with the learning rate `lr` (PyTorch's default: 0.01) and PyTorch's defaults. The rate is
    /// relative to the root mean square of each parameter's elements, and is limited to 1/√t at step t. The first step
    /// checks the settings.
    pub fn new(lr: f64) -> Self {
        let mut common = Common::new(lr);
        common.decoupled = true;
        let smallest = if T::DTYPE == DType::F32 { f32::EPSILON.into() } else { f64::EPSILON };
        Adafactor { beta2_decay: -0.8, eps: [smallest, 1e-3], clip: 1.0, common }
    }

    /// Sets the exponent of the step's number t. The newest gradient has the weight t^`beta2_decay` in the running means. It must not be
    /// positive; -0.8 by default.
    #[must_use]
    pub fn beta2_decay(self, beta2_decay: f64) -> Self {
        Adafactor { beta2_decay, ..self }
    }

    /// Sets two lower bounds. `first` bounds the root of the estimated mean squared gradient, and the mean of R (the mean squares of the
    /// rows); by default it is the distance of 1 to the next number of type `T`. `second` bounds the root mean square of a parameter's
    /// elements, by which the learning rate is multiplied; by default it is 1e-3.
    #[must_use]
    pub fn eps(self, first: f64, second: f64) -> Self {
        Adafactor { eps: [first, second], ..self }
    }

    /// Sets the largest root mean square of an update, before the update is multiplied by the learning rate. It must be at least 1; 1 by
    /// default. PyTorch: `d`.
    #[must_use]
    pub fn clip(self, d: f64) -> Self {
        Adafactor { clip: d, ..self }
    }
}

/// Returns the root of the mean of the squared elements of `x`.
fn root_mean_square<T: Float>(x: &Tensor<T>) -> Result<f64> {
    Ok(x.try_square()?.try_mean(..)?.item().to_f64().sqrt())
}

#[wengert_macros::precompiled]
impl<T: Float> Optimizer<T> for Adafactor<T> {
    common_accessors!();

    fn states(&self) -> &'static [&'static str] {
        &["row_var", "col_var", "variance"]
    }

    fn state_shape(&self, name: &str, shape: &Shape) -> Option<Shape> {
        let mut reduced = shape.to_vec();
        match (name, shape.rank()) {
            ("variance", 0 | 1) => {}
            ("variance", _) | (_, 0 | 1) => return None,
            ("row_var", rank) => reduced[rank - 1] = 1,
            (_, rank) => reduced[rank - 2] = 1,
        }
        Some(Shape::from(&reduced[..]))
    }

    fn is_elementwise(&self) -> bool {
        false
    }

    fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta2_decay", Setting::Number(&mut self.beta2_decay, Range::Finite));
        each("eps1", Setting::Number(&mut self.eps[0], Range::NotNegative));
        each("eps2", Setting::Number(&mut self.eps[1], Range::NotNegative));
        each("d", Setting::Number(&mut self.clip, Range::NotNegative));
    }

    fn check(&self) -> Result<()> {
        if self.clip < 1.0 {
            return Err(Error::Setting { name: "d", value: self.clip, expected: "at least 1" });
        }
        if self.beta2_decay > 0.0 {
            return Err(Error::Setting { name: "beta2_decay", value: self.beta2_decay, expected: "at most 0" });
        }
        Ok(())
    }

    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()> {
        if states.tensors.is_empty() {
            let shapes = self.states().iter().filter_map(|name| self.state_shape(name, value.shape()));
            states.tensors = shapes.map(|shape| Tensor::try_full(&shape, T::ZERO)).collect::<Result<_, _>>()?;
        }
        if value.numel() == 0 {
            return Ok(());
        }
        let (number, step, lr) = (T::from_f64, states.steps as f64, self.common.lr);
        let gradient = if self.common.maximize { &gradient.try_neg()? } else { gradient };
        let (squares, share) = (gradient.try_square()?, number(libm::pow(step, self.beta2_decay)));
        let blend = |average: &mut Tensor<T>, mean: &Tensor<T>| {
            average.try_update_with(mean, [], |average, mean, []| (lerp(average, mean, share), []))
        };
        let estimate = match &mut states.tensors[..] {
            [rows, columns] => {
                blend(rows, &squares.try_mean_keepdim(-1)?)?;
                blend(columns, &squares.try_mean_keepdim(-2)?)?;
                let total = rows.try_mean_keepdim(-2)?.try_clamp_min(self.eps[0])?;
                rows.try_matmul(&*columns)?.try_div(&total)?
            }
            variances => {
                variances.iter_mut().try_for_each(|variance| blend(variance, &squares))?;
                variances.first().cloned().unwrap_or(squares)
            }
        };
        let update = estimate.try_clamp_min(self.eps[0] * self.eps[0])?.try_rsqrt()?.try_mul(gradient)?;
        let size = root_mean_square(value)?.max(self.eps[1]) * lr.min(1.0 / step.sqrt());
        let factor = number(size / (root_mean_square(&update)? / self.clip).max(1.0));
        let decayed = self.common.decayed_parameter();
        Ok(value.try_update_with(&update, [], |p, u, []| (decayed.compute(p) - factor * u, []))?)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use wengert_autograd::prelude::*;

    use super::*;
    use crate::{Checkpoint, Module as _};

    /// Returns the elements of a parameter after three steps of `optimizer`. Element k begins at k / 4 - ½. If its current value is p, its
    /// gradient in step t, counted from 0, is sin((k + 1)(0.7 + t)) + p.
    pub(in crate::optim) fn after_three_steps<O: Optimizer<f64>>(mut optimizer: O, shape: &[usize]) -> Vec<f64> {
        let count = shape.iter().product::<usize>();
        let numbers = Tensor::<f64>::arange(count).reshape(shape);
        let mut w = &numbers * 0.25 - 0.5;
        for step in 0..3 {
            let gradient = ((&numbers + 1.0) * (0.7 + f64::from(step))).sin() + &w;
            optimizer.step_tensors([&mut w], &[gradient]);
        }
        w.to_vec()
    }

    #[track_caller]
    pub(in crate::optim) fn assert_close(found: &[f64], expected: &[f64]) {
        // A step has about ten operations, whose rounding errors are far below 1e-13.
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-13), "{found:?} {expected:?}");
    }

    /// The expected values were computed by `torch.optim.Adafactor` (PyTorch 2.15) in float64, with the same gradients, as in
    /// `tools/matrix_cases.py`.
    #[test]
    fn three_steps_are_pytorchs() {
        let new = Adafactor::<f64>::new;
        let matrix = [
            -0.5041197898554424,
            -0.24765842735386778,
            -0.004863172017164152,
            0.24187059737571429,
            0.48685279535035164,
            0.7492400003104361,
        ];
        assert_close(&after_three_steps(new(0.01), &[2, 3]), &matrix);
        let vector = [-0.5062674417974161, -0.24656925985578373, -0.003474246214772914];
        assert_close(&after_three_steps(new(0.01), &[3]), &vector);
        let cube = [
            -0.6808536549578381,
            -0.029103094198669112,
            -0.35735135461365874,
            0.4864012308840072,
            -0.6101902092398096,
            0.5637152200821712,
            0.3070721488637104,
            -0.17044617781133192,
            0.3704926360609433,
            0.5090653870882514,
            0.9131446914930591,
            0.6960912483395597,
        ];
        let settings = new(0.5).weight_decay(0.1).beta2_decay(-0.5).clip(1.5).eps(1e-3, 1e-2);
        assert_close(&after_three_steps(settings, &[2, 2, 3]), &cube);
        let ascent = [-0.4966444099022861, -0.25341564065303285, 0.003771360304481972, 0.25292299711107646];
        assert_close(&after_three_steps(new(0.01).maximize(), &[2, 2]), &ascent);
    }

    #[test]
    fn states_of_all_shapes_are_saved_and_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let generator = &mut Generator::new(0);
        let mut model =
            vec![Parameter::new(Tensor::<f64>::randn([3, 2], generator)), Parameter::new(Tensor::ones([3]))];
        let gradients = |model: &[Parameter<f64>]| {
            let tape = Tape::new();
            (tape.parameter(&model[0]).square().sum(1) * tape.parameter(&model[1])).sin().sum(..).backward()
        };
        let mut adafactor = Adafactor::new(0.1);
        for _ in 0..2 {
            let gradients = gradients(&model);
            adafactor.step(&mut model, &gradients);
        }
        Checkpoint::new().model(&model).optimizer("own", &adafactor, &model).save(&path).unwrap();
        let (mut other, mut restored) = (model.clone(), Adafactor::new(0.5));
        let saved = Checkpoint::open(&path).unwrap();
        assert_eq!(saved.shape("@optimizer.own.0.row_var").unwrap(), [3, 1]);
        assert_eq!(saved.shape("@optimizer.own.0.col_var").unwrap(), [1, 2]);
        assert_eq!(saved.shape("@optimizer.own.1.variance").unwrap(), [3]);
        saved.load_optimizer("own", &mut restored, &other).unwrap();
        let (first, second) = (gradients(&model), gradients(&other));
        adafactor.step(&mut model, &first);
        restored.step(&mut other, &second);
        assert_eq!(other.to_vector(), model.to_vector());
    }

    #[test]
    fn states_are_rows_and_columns() {
        let adafactor = Adafactor::<f32>::new(0.01);
        let shapes = |shape: &[usize]| -> Vec<Option<Vec<usize>>> {
            let shape = Shape::from(shape);
            adafactor.states().iter().map(|name| Some(adafactor.state_shape(name, &shape)?.to_vec())).collect()
        };
        assert_eq!(shapes(&[5, 4, 3]), [Some(vec![5, 4, 1]), Some(vec![5, 1, 3]), None]);
        assert_eq!(shapes(&[4]), [None, None, Some(vec![4])]);
        assert_eq!(shapes(&[]), [None, None, Some(vec![])]);
    }

    #[test]
    fn settings_outside_their_range_are_errors_and_no_elements_are_no_step() {
        let mut w = Tensor::<f64>::zeros([2]);
        let gradient = [Tensor::zeros([2])];
        for (optimizer, name) in [
            (Adafactor::new(0.1).clip(0.5), "d"),
            (Adafactor::new(0.1).beta2_decay(0.1), "beta2_decay"),
            (Adafactor::new(0.1).eps(-1.0, 0.0), "eps1"),
        ] {
            let error = optimizer.clone().try_step_tensors([&mut w], &gradient).unwrap_err();
            assert!(matches!(error, Error::Setting { name: told, .. } if told == name), "{error}");
        }
        let mut empty = Tensor::<f64>::zeros([0, 3]);
        Adafactor::new(0.1).step_tensors([&mut empty], &[Tensor::zeros([0, 3])]);
    }
}
