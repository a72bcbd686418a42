//! Maps the errors of the library to the categories of the conformance format.

use std::error::Error as StdError;

use wengert::autograd;
use wengert_tensor::Error;

use super::format::{Expected, Phase};

/// An error that an operation returned.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The categories that the error may have; empty if it has none.
    categories: &'static [&'static str],
    sentence: String,
}

impl Refusal {
    /// Reads the categories and the first line of an error of the library.
    pub fn new(error: &(dyn StdError + 'static)) -> Self {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Refusal { categories: categories(error), sentence: error.sentence() };
        }
        if let Some(error) = error.downcast_ref::<autograd::Error>() {
            let categories: &[&str] = match error {
                autograd::Error::Tensor(error) => categories(error),
                autograd::Error::NotDifferentiable { .. } => &["not_differentiable"],
                autograd::Error::NotScalar { .. } | autograd::Error::SeedShape { .. } => &["grad_shape"],
                _ => &[],
            };
            return Refusal { categories, sentence: error.sentence() };
        }
        Refusal { categories: &[], sentence: error.to_string() }
    }

    /// Checks that this is the expected error: its phase, its step if the case names one, and its category. Compares the message
    /// too, if the format says that the messages of the category are regular.
    pub fn check(&self, phase: Phase, step: Option<usize>, expected: &Expected) -> Result<(), String> {
        if phase != expected.phase || expected.step.is_some() && step != expected.step {
            return Err(format!(
                "refused in phase {phase:?}, step {step:?}, expected in {:?}, {:?}: {}",
                expected.phase, expected.step, self.sentence
            ));
        }
        if !self.categories.contains(&expected.category.as_str()) {
            return Err(format!(
                "an error of {:?} was raised, expected '{}'\n    got:      {}\n    expected: {}",
                self.categories, expected.category, self.sentence, expected.message
            ));
        }
        let regular = ["broadcast", "inplace_shape", "expand"].contains(&expected.category.as_str());
        if regular && self.sentence != expected.message {
            return Err(format!(
                "the sentence differs\n    got:      {}\n    expected: {}",
                self.sentence, expected.message
            ));
        }
        Ok(())
    }

    /// Returns the first line of the error's text.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }
}

fn categories(error: &Error) -> &'static [&'static str] {
    match error {
        Error::Broadcast(..) | Error::BroadcastShapes(..) | Error::ShapeMismatch { .. } => &["broadcast"],
        Error::InPlaceShape { .. } => &["inplace_shape"],
        Error::Expand(..) | Error::ExpandSizes { .. } | Error::SumTo { .. } => &["expand"],
        Error::DimRange { .. } => &["dim_range"],
        // The format maps these errors by the class of PyTorch's exception, which depends on the operation.
        Error::IndexRange { .. } => &["index_range", "dim_range", "argument"],
        Error::Reshape { .. } => &["reshape"],
        Error::Overlap { .. } => &["overlap"],
        Error::MatmulShape { .. } => &["matmul_shape"],
        Error::EmptyReduction { .. } => &["empty_reduction"],
        Error::Argument { .. } => &["argument"],
        Error::ElementType { .. } => &["dtype", "dtype_cast"],
        _ => &[],
    }
}
