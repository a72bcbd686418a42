//! The settings and the running means that Adam and similar optimisers share.

use wengert_tensor::Float;

use crate::optim::common::lerp;
use crate::optim::setting::{Range, Setting};

/// The settings of an optimiser with running means of the gradient and of its square. Adamax has a decaying maximum of the gradient's
/// absolute value instead of the second mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// The decay rates of the two means. Each step multiplies each old mean by its decay rate.
    pub(super) betas: [f64; 2],
    /// The constant that is added to the divisor of a step, so that the divisor is not 0. Adamax adds it to the gradient's absolute value.
    pub(super) eps: f64,
}

impl Moments {
    /// PyTorch's defaults for Adam, Adamax, NAdam and RAdam.
    pub(super) const DEFAULT: Moments = Moments { betas: [0.9, 0.999], eps: 1e-8 };

    /// Calls `each` with the name of each setting and a reference to the setting.
    pub(super) fn settings(&mut self, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        each("beta1", Setting::Number(&mut self.betas[0], Range::BelowOne));
        each("beta2", Setting::Number(&mut self.betas[1], Range::BelowOne));
        each("eps", Setting::Number(&mut self.eps, Range::NotNegative));
    }

    /// Returns the settings converted to the element type `T`, for the loop over the elements of a parameter.
    pub(super) fn moment_update<T: Float>(&self) -> MomentUpdate<T> {
        let ([beta1, beta2], number) = (self.betas, T::from_f64);
        MomentUpdate {
            one_minus_beta1: number(1.0 - beta1),
            beta2: number(beta2),
            one_minus_beta2: number(1.0 - beta2),
            eps: number(self.eps),
        }
    }
}

/// The settings of [`Moments`], converted to the type `T`. Here β₁ and β₂ are the decay rates of the two running
/// means.
#[derive(Clone, Copy, Debug)]
pub(super) struct MomentUpdate<T> {
    one_minus_beta1: T,
    pub(super) beta2: T,
    one_minus_beta2: T,
    pub(super) eps: T,
}

impl<T: Float> MomentUpdate<T> {
    /// Returns the new running mean of the gradient, from the old mean `m` and the gradient `g`.
    #[inline(always)]
    pub(super) fn first_moment(self, m: T, g: T) -> T {
        lerp(m, g, self.one_minus_beta1)
    }

    /// Returns the new running mean of the squared gradient, from the old mean `v` and the gradient `g`.
    #[inline(always)]
    pub(super) fn second_moment(self, v: T, g: T) -> T {
        v * self.beta2 + self.one_minus_beta2 * g * g
    }
}

/// Defines the builder methods of an optimiser for the settings in its field `moments`.
macro_rules! moment_settings {
    () => {
        /// Sets the decay rates of the running means of the gradient (`first`) and of its square (`second`), each from 0 to 1, 1 excluded.
        /// In [`Adamax`](crate::Adamax), `second` is the decay rate of the maximum. PyTorch: `betas`.
        #[must_use]
        pub fn betas(mut self, first: f64, second: f64) -> Self {
            self.moments.betas = [first, second];
            self
        }

        /// Sets the constant that is added to the divisor of a step, so that the divisor is not 0. It must not be negative.
        /// [`Adamax`](crate::Adamax) adds it to the gradient's absolute value. PyTorch: `eps`.
        #[must_use]
        pub fn eps(mut self, eps: f64) -> Self {
            self.moments.eps = eps;
            self
        }
    };
}

/// Defines the builder method of an optimiser that decouples the weight decay.
macro_rules! decoupled_setting {
    () => {
        /// Decouples the weight decay from the running means: each step subtracts `lr · weight_decay` times the parameter from the parameter,
        /// and the gradient stays as it is. PyTorch: `decoupled_weight_decay=True`.
        #[must_use]
        pub fn decoupled(mut self) -> Self {
            self.common.decoupled = true;
            self
        }
    };
}

pub(super) use {decoupled_setting, moment_settings};
