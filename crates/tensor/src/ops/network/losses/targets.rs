//! Numbers of classes as the targets of a loss: checked, weighed, some of them ignored.

use crate::ops::compose::Compose;
use crate::ops::index::positions::along;
use crate::ops::network::losses::reduction::{LossReduction, reduced, total};
use crate::ops::{Argument, TensorLike};
use crate::{Compare, Error, Float, Scalar, Shape, Site, Tensor, Unary};

/// How classes count.
#[derive(Debug)]
pub struct ClassOptions<'w, A> {
    /// A weight for each class, `[c]`; a constant, through which no gradient flows.
    pub weight: Option<&'w A>,
    /// The number of the targets that do not count.
    pub ignore_index: i64,
    /// How much of each target is spread evenly over all classes, 0 to 1; cross-entropy only.
    pub label_smoothing: f64,
    /// What becomes of the single losses.
    pub reduction: LossReduction,
}

impl<A> Clone for ClassOptions<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for ClassOptions<'_, A> {}

impl<A> Default for ClassOptions<'_, A> {
    /// No weights, -100 ignored, no smoothing, the mean.
    fn default() -> Self {
        ClassOptions { weight: None, ignore_index: -100, label_smoothing: 0.0, reduction: LossReduction::Mean }
    }
}

/// Numbers of classes, checked against the prediction.
pub(crate) struct Targets {
    pub(crate) axis: usize,
    pub(crate) classes: usize,
    /// The classes, 0 in place of what is ignored.
    index: Tensor<i64>,
    /// Which of them count, where not all do.
    kept: Option<Tensor<bool>>,
    count: usize,
}

impl Targets {
    pub(crate) fn new<A>(
        x: &Shape,
        target: &Tensor<i64>,
        options: &ClassOptions<'_, A>,
        at: Site,
    ) -> Result<Self, Error> {
        let refuse = |message: String| Err(Error::argument(at, message));
        let axis = match x.rank() {
            0 => return refuse("Expected 1 or more dimensions (got 0)".into()),
            1 => 0,
            _ => 1,
        };
        let own = target.shape();
        let mut expected = x.clone();
        let classes = expected.remove(axis);
        if *own != expected {
            let sentence = if x.rank() > 1 && own.rank() > 0 && x[0] != own[0] {
                format!("Expected input batch_size ({}) to match target batch_size ({}).", x[0], own[0])
            } else if x.rank() <= 2 && own.rank() > 1 {
                "0D or 1D target tensor expected, multi-target not supported".into()
            } else {
                format!("size mismatch (got input: {x}, target: {own})")
            };
            return Err(Error::argument(at, sentence).with_hint(way_out(x, own, axis, &expected)));
        }
        let ignored = options.ignore_index;
        let count = target.iter().filter(|&class| class != ignored).count();
        let (index, kept) = if count == target.numel() {
            (target.clone(), None)
        } else {
            let kept = target.compared(Compare::Ne, ignored, at)?;
            (target.chosen(&kept, 0, at)?, Some(kept))
        };
        let outside = |&(_, class): &(usize, i64)| class != ignored && !(0..classes as i64).contains(&class);
        if let Some((position, class)) = target.iter().enumerate().find(outside) {
            let message = format!(
                "Target {class} is out of bounds. (It is number {position} of the targets, from 0; there are {classes} \
                 classes.)"
            );
            return Err(Error::IndexRange { message, at });
        }
        Ok(Targets { axis, classes, index, kept, count })
    }

    /// 0 where the target is ignored.
    pub(crate) fn masked<A: TensorLike>(&self, losses: &A, at: Site) -> Result<A, A::Error> {
        match &self.kept {
            None => Ok(losses.clone()),
            Some(kept) => losses.chosen(&losses.mask(kept), Argument::Number(A::Elem::ZERO), at),
        }
    }

    /// The weight of each target.
    fn weights<A: TensorLike>(&self, weight: &A, at: Site) -> Result<A, A::Error> {
        weight.apply_detach(at)?.apply_take(&self.index, at)
    }

    pub(crate) fn nll<A: TensorLike<Elem: Float>>(
        &self,
        x: &A,
        options: &ClassOptions<'_, A>,
        at: Site,
    ) -> Result<A, A::Error> {
        // Where everything is ignored there may be no class to read.
        let picked = if self.classes == 0 {
            x.filled(0.0, self.index.shape(), at)?
        } else {
            let mut place = self.index.shape().clone();
            place.insert(self.axis, 1);
            let positions = along(&x.shape(), self.axis, &self.index.reshaped(place, at)?, at)?;
            x.apply_take(&positions.reshaped(self.index.shape().clone(), at)?, at)?
        };
        let mut losses = picked.mapped(Unary::Neg, at)?;
        if let Some(weight) = options.weight {
            losses = losses.times(&self.weights(weight, at)?, at)?;
        }
        self.reduced(&self.masked(&losses, at)?, options, at)
    }

    /// Reduced, the mean by weight.
    pub(crate) fn reduced<A: TensorLike<Elem: Float>>(
        &self,
        losses: &A,
        options: &ClassOptions<'_, A>,
        at: Site,
    ) -> Result<A, A::Error> {
        match (options.reduction, options.weight) {
            (LossReduction::Mean, Some(weight)) => {
                let weights = self.masked(&self.weights(weight, at)?, at)?;
                total(losses, at)?.divided(&total(&weights, at)?, at)
            }
            (LossReduction::Mean, None) => total(losses, at)?.divided(self.count as f64, at),
            _ => reduced(losses, options.reduction, at),
        }
    }
}

/// What to do about targets of the shape `own` where `expected` fits the prediction `x`.
fn way_out(x: &Shape, own: &Shape, axis: usize, expected: &Shape) -> String {
    let mut column = expected.clone();
    column.insert(expected.rank().min(axis), 1);
    let last = x.rank() > 2 && x[..x.rank() - 1] == own[..];
    let change = if own == x {
        format!("one-hot targets become classes by `targets.argmax({axis})`, probabilities are passed as such")
    } else if *own == column {
        format!("`targets.squeeze({axis})` has it")
    } else if last {
        let end = x.rank() - 2;
        format!(
            "with the classes last, `logits.flatten(0, {end})` and `targets.flatten(0, {end})` fit, or `logits.movedim(-1, 1)`"
        )
    } else {
        return format!("the classes are dimension {axis} of the prediction; targets of shape {expected} fit it");
    };
    format!("the classes are dimension {axis} of the prediction; targets of shape {expected} fit it: {change}")
}

pub(crate) fn check_weight<A: TensorLike>(weight: Option<&A>, classes: usize, at: Site) -> Result<(), Error> {
    match weight.map(A::shape) {
        Some(shape) if shape != [classes] => {
            let message = format!(
                "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of \
                 shape: {shape}"
            );
            Err(Error::argument(at, message))
        }
        _ => Ok(()),
    }
}
