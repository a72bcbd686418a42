//! The normalization of a Fourier transform.

use std::str::FromStr;

/// The normalization of a forward transform and its inverse, for signals of n elements. PyTorch: the argument `norm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The inverse transform divides by n.
    #[default]
    Backward,
    /// Both transforms divide by √n, so they do not change the 2-norm of a signal.
    Ortho,
    /// The forward transform divides by n.
    Forward,
}

impl Norm {
    /// Returns the factor of the forward transform of `n` elements, or of the inverse transform if `inverse` is true.
    pub(crate) fn factor(self, n: usize, inverse: bool) -> f64 {
        match (self, inverse) {
            (Norm::Backward, false) | (Norm::Forward, true) => 1.0,
            (Norm::Backward, true) | (Norm::Forward, false) => 1.0 / n as f64,
            (Norm::Ortho, _) => 1.0 / (n as f64).sqrt(),
        }
    }

    /// Returns the normalization in which the forward and the inverse transform exchange their factors.
    pub(crate) fn swapped(self) -> Self {
        match self {
            Norm::Backward => Norm::Forward,
            Norm::Ortho => Norm::Ortho,
            Norm::Forward => Norm::Backward,
        }
    }
}

impl FromStr for Norm {
    type Err = String;

    /// Parses PyTorch's names `backward`, `ortho` and `forward`. For any other name, returns a message that shows it.
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "backward" => Ok(Norm::Backward),
            "ortho" => Ok(Norm::Ortho),
            "forward" => Ok(Norm::Forward),
            _ => Err(format!("Invalid normalization mode: \"{name}\"")),
        }
    }
}
