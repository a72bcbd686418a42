//! Losses of a prediction and a target as functions with PyTorch's defaults, such as `mse_loss(&prediction, &target)`, and as
//! types with options: `MseLoss::new().reduction(LossReduction::Sum).of(&prediction, &target)`.
//!
//! Prediction and target must have the same shape unless `broadcast()` is called. This rule finds a common mistake: a prediction `[n, 1]` and
//! a target `[n]` would broadcast to losses `[n, n]`. The mean of these losses falls in training although the model does not learn the
//! targets. Each loss has the formula of the method with the same name.

use wengert_macros::twins;

use crate::ops::network::losses::likelihood::LikelihoodLosses;
use crate::ops::network::losses::margins::MarginLosses;
use crate::ops::network::losses::reduction::LossReduction;
use crate::ops::network::losses::regression::RegressionLosses;
use crate::ops::{Arithmetic as _, ArrayOperand, IntoArray, Result, TensorLike};
use crate::shape::broadcast;
use crate::{Error, Float, Shape, Site, Tensor};

/// Refuses a prediction and a target of different shapes.
fn check_shapes(x: &Shape, y: &Shape, at: Site) -> Result<(), Error> {
    if x == y {
        return Ok(());
    }
    let message = format!("{}: the prediction has shape {x}, the target {y}", at.operation);
    let mut hint = "they are compared element by element".to_owned();
    if x.numel() == y.numel() {
        hint = format!("{hint}: `target.reshape({x})`");
    }
    if let Ok(joined) = broadcast::join(&[x, y]) {
        hint = format!("{hint}; for losses of shape {joined}, call `broadcast()` of the loss's type");
    }
    Err(Error::argument(at, message).with_hint(hint))
}

macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        $type:ident $([$t:ident])? $function:ident $try_function:ident
        // The options of the loss: first the numbers and truth values with their defaults, then the tensors.
        { $($(#[$about:meta])* $option:ident: $of:ty = $default:expr;)* }
        { $($(#[$tensor_about:meta])* $tensor:ident: $tensor_of:ty;)* }
        |$x:ident, $y:ident, $options:ident| $call:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $type $(<$t: Float = f32>)? {
            reduction: LossReduction,
            broadcast: bool,
            $($option: $of,)*
            $($tensor: Option<$tensor_of>,)*
        }

        impl $(<$t: Float>)? Default for $type $(<$t>)? {
            fn default() -> Self {
                let (reduction, broadcast) = (LossReduction::Mean, false);
                $type { reduction, broadcast, $($option: $default,)* $($tensor: None,)* }
            }
        }

        #[twins]
        impl $(<$t: Float>)? $type $(<$t>)? {
            /// Returns the loss with PyTorch's defaults. The reduction is the mean.
            pub fn new() -> Self {
                Self::default()
            }

            /// Sets how the losses are reduced: to their mean, to their sum, or not at all.
            pub fn reduction(self, reduction: LossReduction) -> Self {
                Self { reduction, ..self }
            }

            /// Allows different shapes if the operation supports it: prediction and target then broadcast.
            pub fn broadcast(self) -> Self {
                Self { broadcast: true, ..self }
            }

            $(
                $(#[$about])*
                pub fn $option(self, $option: $of) -> Self {
                    Self { $option, ..self }
                }
            )*
            $(
                $(#[$tensor_about])*
                pub fn $tensor(self, $tensor: &$tensor_of) -> Self {
                    Self { $tensor: Some($tensor.clone()), ..self }
                }
            )*

            /// Returns the loss of `prediction` for `target`.
            ///
            /// # Errors
            ///
            /// If the shapes differ and [`broadcast`](Self::broadcast) was not called, or if the method of the same name returns an error.
            pub fn try_of<P>(
                &self,
                prediction: P,
                target: impl ArrayOperand<P::Array>,
            ) -> Result<P::Array>
            where
                P: IntoArray,
                P::Array: TensorLike<Elem: Float>,
                $(P::Array: TensorLike<Elem = $t>,)?
            {
                let ($x, $options) = (&prediction.array(), self);
                let $y = &target.into_array($x)?;
                if !self.broadcast {
                    check_shapes(&$x.shape(), &$y.shape(), Site::here(stringify!($function)))?;
                }
                $(let $tensor = &self.$tensor.as_ref().map(|tensor| $x.try_constant(tensor)).transpose()?;)*
                $call
            }
        }

        #[doc = concat!("Returns the loss of [`", stringify!($type), "`] with the default options.")]
        ///
        /// # Errors
        ///
        /// If the shapes differ, or if the method of the same name returns an error.
        #[twins]
        pub fn $try_function<P: IntoArray<Array: TensorLike<Elem: Float>>>(
            prediction: P,
            target: impl ArrayOperand<P::Array>,
        ) -> Result<P::Array> {
            $type::default().try_of(prediction, target)
        }
    )*};
}

losses! {
    /// The squared error (x - y)² of a prediction x and a target y: [`mse_loss`](RegressionLosses::mse_loss). PyTorch: `nn.MSELoss`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::ops::{LossReduction, MseLoss};
    /// use wengert::prelude::*;
    ///
    /// let (x, y) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 4.0]));
    /// assert_eq!(mse_loss(&x, &y).item(), 2.0);
    /// assert_eq!(MseLoss::new().reduction(LossReduction::Sum).of(&x, &y).item(), 4.0);
    /// let error = try_mse_loss(&x.unsqueeze(1), &y).unwrap_err();
    /// assert_eq!(error.sentence(), "mse_loss: the prediction has shape [2, 1], the target [2]");
    /// ```
    #[doc(alias = "MSELoss")]
    MseLoss[T] mse_loss try_mse_loss
    {}
    {
        /// Sets a weight for each element, in the shape of the prediction. The mean divides by the sum of the weights.
        weight: Tensor<T>;
    }
    |x, y, options| x.try_mse_loss(y, weight.as_ref(), options.reduction);

    /// The absolute error |x - y| of a prediction x and a target y: [`l1_loss`](RegressionLosses::l1_loss). PyTorch: `nn.L1Loss`.
    L1Loss[T] l1_loss try_l1_loss
    {}
    {
        /// Sets a weight for each element, in the shape of the prediction. The mean divides by the sum of the weights.
        weight: Tensor<T>;
    }
    |x, y, options| x.try_l1_loss(y, weight.as_ref(), options.reduction);

    /// A loss that is quadratic for small differences of prediction and target, and linear for larger differences:
    /// [`smooth_l1_loss`](RegressionLosses::smooth_l1_loss). PyTorch: `nn.SmoothL1Loss`.
    SmoothL1Loss smooth_l1_loss try_smooth_l1_loss
    {
        /// Sets the distance of prediction and target at which the linear part starts, 0 or more; 1 by default.
        beta: f64 = 1.0;
    }
    {}
    |x, y, options| x.try_smooth_l1_loss(y, options.beta, options.reduction);

    /// A loss that is quadratic for small differences of prediction and target, and linear with slope `delta` for larger differences:
    /// [`huber_loss`](RegressionLosses::huber_loss). PyTorch: `nn.HuberLoss`.
    HuberLoss[T] huber_loss try_huber_loss
    {
        /// Sets the distance of prediction and target at which the linear part starts, above 0; 1 by default.
        delta: f64 = 1.0;
    }
    {
        /// Sets a weight for each element, in the shape of the prediction. The mean divides by the number of elements.
        weight: Tensor<T>;
    }
    |x, y, options| x.try_huber_loss(y, options.delta, weight.as_ref(), options.reduction);

    /// The Kullback-Leibler divergence D(y ‖ eˣ) for log-probabilities x (the prediction) and probabilities y (the target):
    /// [`kl_div`](LikelihoodLosses::kl_div). PyTorch: `nn.KLDivLoss`.
    #[doc(alias = "KLDivLoss")]
    KlDivLoss kl_div try_kl_div
    {
        /// Sets whether the target has log-probabilities instead of probabilities.
        log_target: bool = false;
        /// Sets whether the loss is the sum divided by the batch size, which is the mathematical divergence. The reduction is then ignored.
        /// The batch is dimension 0 of the prediction. PyTorch: `reduction="batchmean"`.
        batch_mean: bool = false;
    }
    {}
    |x, y, options| {
        if !options.batch_mean {
            return x.try_kl_div(y, options.log_target, options.reduction);
        }
        let examples = x.shape().first().copied().unwrap_or(1);
        x.try_kl_div(y, options.log_target, LossReduction::Sum)?.try_div(examples)
    };

    /// The negative log-likelihood of counts under Poisson distributions:
    /// [`poisson_nll_loss`](LikelihoodLosses::poisson_nll_loss). PyTorch: `nn.PoissonNLLLoss`.
    #[doc(alias = "PoissonNLLLoss")]
    PoissonNllLoss poisson_nll_loss try_poisson_nll_loss
    {
        /// Sets whether the prediction is the logarithm of the rate; true by default.
        log_input: bool = true;
        /// Sets whether Stirling's approximation of ln y! is added for counts y (the target) above 1.
        full: bool = false;
        /// Sets the constant added to a rate before its logarithm is taken; 1e-8 by default.
        eps: f64 = 1e-8;
    }
    {}
    |x, y, options| x.try_poisson_nll_loss(y, options.log_input, options.full, options.eps, options.reduction);

    /// The cross-entropy of probabilities of two classes: [`binary_cross_entropy`](LikelihoodLosses::binary_cross_entropy).
    /// PyTorch: `nn.BCELoss`.
    #[doc(alias = "BCELoss")]
    BceLoss[T] binary_cross_entropy try_binary_cross_entropy
    {}
    {
        /// Sets a weight for each element. The weights expand to the shape of the prediction.
        weight: Tensor<T>;
    }
    |x, y, options| x.try_binary_cross_entropy(y, weight.as_ref(), options.reduction);

    /// The cross-entropy of the logits of two classes:
    /// [`binary_cross_entropy_with_logits`](LikelihoodLosses::binary_cross_entropy_with_logits). PyTorch: `nn.BCEWithLogitsLoss`.
    #[doc(alias = "BCEWithLogitsLoss")]
    BceWithLogitsLoss[T] binary_cross_entropy_with_logits try_binary_cross_entropy_with_logits
    {}
    {
        /// Sets a weight for each element. The weights expand to the shape of the prediction.
        weight: Tensor<T>;
        /// Sets factors of the losses of positive targets. The factors expand to the shape of the prediction.
        pos_weight: Tensor<T>;
    }
    |x, y, options| {
        x.try_binary_cross_entropy_with_logits(y, weight.as_ref(), pos_weight.as_ref(), options.reduction)
    };

    /// The loss ln(1 + e^(-y x)) of a prediction x and a target y of 1 or -1: [`soft_margin_loss`](MarginLosses::soft_margin_loss).
    /// PyTorch: `nn.SoftMarginLoss`.
    SoftMarginLoss soft_margin_loss try_soft_margin_loss
    {}
    {}
    |x, y, options| x.try_soft_margin_loss(y, options.reduction);

    /// A loss of distances, which makes the distances of similar pairs small and of dissimilar pairs large:
    /// [`hinge_embedding_loss`](MarginLosses::hinge_embedding_loss). PyTorch: `nn.HingeEmbeddingLoss`.
    HingeEmbeddingLoss hinge_embedding_loss try_hinge_embedding_loss
    {
        /// Sets the distance that dissimilar pairs should at least have; 1 by default.
        margin: f64 = 1.0;
    }
    {}
    |x, y, options| x.try_hinge_embedding_loss(y, options.margin, options.reduction);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Views;

    #[test]
    fn functions_and_types_equal_the_methods() {
        let (x, y) = (Tensor::from([0.25, 0.5, 0.75]), Tensor::from([0.0, 1.0, 1.0]));
        let w = Tensor::from([1.0, 2.0, 3.0]);
        let (mean, sum) = (LossReduction::Mean, LossReduction::Sum);
        assert_eq!(mse_loss(&x, &y), x.mse_loss(&y, None, mean));
        assert_eq!(MseLoss::new().weight(&w).of(x.clone(), y.clone()), x.mse_loss(&y, Some(&w), mean));
        assert_eq!(l1_loss(&x, &y), x.l1_loss(&y, None, mean));
        assert_eq!(smooth_l1_loss(&x, &y), x.smooth_l1_loss(&y, 1.0, mean));
        assert_eq!(SmoothL1Loss::new().beta(0.1).of(&x, &y), x.smooth_l1_loss(&y, 0.1, mean));
        assert_eq!(HuberLoss::new().delta(0.3).reduction(sum).of(&x, &y), x.huber_loss(&y, 0.3, None, sum));
        assert_eq!(huber_loss(&x, &y), x.huber_loss(&y, 1.0, None, mean));
        assert_eq!(kl_div(&x, &y), x.kl_div(&y, false, mean));
        let (rows, targets) = (Tensor::from([[-1.0, -2.0], [-0.5, -3.0]]), Tensor::from([[0.5, 0.5], [0.25, 0.75]]));
        let sum = rows.kl_div(&targets, false, LossReduction::Sum);
        assert_eq!(KlDivLoss::new().batch_mean(true).of(&rows, &targets), sum / 2.0);
        assert_eq!(poisson_nll_loss(&x, &y), x.poisson_nll_loss(&y, true, false, 1e-8, mean));
        assert_eq!(binary_cross_entropy(&x, &y), x.binary_cross_entropy(&y, None, mean));
        let logits = BceWithLogitsLoss::new().pos_weight(&w).of(&x, &y);
        assert_eq!(logits, x.binary_cross_entropy_with_logits(&y, None, Some(&w), mean));
        assert_eq!(soft_margin_loss(&x, &y), x.soft_margin_loss(&y, mean));
        assert_eq!(hinge_embedding_loss(&x, &y), x.hinge_embedding_loss(&y, 1.0, mean));
    }

    #[test]
    fn different_shapes_are_refused_unless_broadcast_is_called() {
        let (column, row) = (Tensor::from([[1.0], [2.0], [3.0]]), Tensor::from([1.0, 2.0, 3.0]));
        let text = try_mse_loss(&column, &row).unwrap_err().to_string();
        let hint = "  hint: they are compared element by element: `target.reshape([3, 1])`; for losses of shape [3, 3], \
                    call `broadcast()` of the loss's type";
        assert_eq!(text.lines().last(), Some(hint));
        assert_eq!(MseLoss::new().broadcast().of(&column, &row).item(), 12.0 / 9.0);
        assert_eq!(mse_loss(&column, row.unsqueeze(1)).item(), 0.0);
        assert!(try_l1_loss(&row, Tensor::from([1.0, 2.0])).is_err());
    }
}
