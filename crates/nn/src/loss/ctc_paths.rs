//! The states through which the paths of connectionist temporal classification (CTC) run. A path is a sequence of one state per step.

use wengert_tensor::{Error, Shape, Site, Tensor};

use crate::loss::checks::refuse;

/// The number that stands for the logarithm of a probability of 0. It is finite, so that sums with it and their gradients are not NaN.
pub(super) const LOG_OF_ZERO: f64 = -1e30;

/// The states of the paths of each sample: a blank, the first label, a blank, and so on to the last label and a blank. All n samples have as
/// many states as the longest target needs. A penalty is a number that is added to a log-probability: 0 for allowed, or [`LOG_OF_ZERO`].
pub(super) struct Paths {
    pub(super) n_states: usize,
    /// The class of each state, `[n, states]`: a label or the blank.
    pub(super) classes: Tensor<i64>,
    /// The log-probability of each state before the first step, `[n, states]`. Only a sample without steps uses these values.
    pub(super) initial_log_probs: Vec<f64>,
    /// The penalty of each state at the first step, `[n, states]`. Only the first two states have the penalty 0, because a path begins in one of
    /// these two.
    pub(super) start_penalties: Vec<f64>,
    /// The penalty for a path that skips the blank before a state, `[n, states]`. Only the blank between two different labels may be skipped.
    pub(super) skip_penalties: Vec<f64>,
    /// The two states in which a path may end, `[n, 2]`: the blank after the last label, and the last label.
    pub(super) end_states: Tensor<i64>,
    /// The penalty of each state of `end_states`, `[n, 2]`. A sample without labels ends in only one state, so the penalty excludes the second one.
    pub(super) end_penalties: Vec<f64>,
}

impl Paths {
    /// Returns the states for the labels of `targets`. A size or a label that does not fit is an error.
    pub(super) fn new(
        log_probs: &Shape,
        targets: &Tensor<i64>,
        input_lengths: &[usize],
        target_lengths: &[usize],
        blank: usize,
        at: Site,
    ) -> Result<Self, Error> {
        let [classes, width] = check_sizes(log_probs, targets, input_lengths, target_lengths, at)?;
        if blank >= classes {
            return refuse(at, format!("the blank is class {blank}, but there are {classes} classes"));
        }
        let samples = target_lengths.len();
        let states = 2 * target_lengths.iter().max().unwrap_or(&0) + 1;
        let penalty = |allowed: bool| if allowed { 0.0 } else { LOG_OF_ZERO };
        let (mut path, mut skip) = (Vec::new(), Vec::new());
        let (mut ends, mut end) = (Vec::new(), Vec::new());
        let targets = targets.try_to_vec()?;
        for (sample, &length) in target_lengths.iter().enumerate() {
            let labels = &targets[sample * width..][..length];
            let class_is_wrong = |&&label: &&i64| !(0..classes as i64).contains(&label) || label == blank as i64;
            if let Some(label) = labels.iter().find(class_is_wrong) {
                return refuse(at, format!("target {label} is the blank {blank} or not one of the {classes} classes"));
            }
            let class = |state: usize| match state % 2 {
                1 => labels.get(state / 2).copied().unwrap_or(blank as i64),
                _ => blank as i64,
            };
            path.extend((0..states).map(class));
            skip.extend((0..states).map(|s| penalty(s % 2 == 1 && s > 2 && class(s) != class(s - 2))));
            ends.extend([2 * length as i64, (2 * length as i64 - 1).max(0)]);
            end.extend([0.0, penalty(length > 0)]);
        }
        let each_state = |allowed: fn(usize) -> bool| {
            (0..samples * states).map(|position| penalty(allowed(position % states))).collect()
        };
        Ok(Paths {
            n_states: states,
            classes: Tensor::from_vec(path, [samples, states]),
            initial_log_probs: each_state(|state| state == 0),
            start_penalties: each_state(|state| state < 2),
            skip_penalties: skip,
            end_states: Tensor::from_vec(ends, [samples, 2]),
            end_penalties: end,
        })
    }
}

/// Returns the number of classes and the number of columns of `targets`, or an error if the shapes and the lengths do
/// not fit each other.
fn check_sizes(
    log_probs: &Shape,
    targets: &Tensor<i64>,
    input_lengths: &[usize],
    target_lengths: &[usize],
    at: Site,
) -> Result<[usize; 2], Error> {
    let refuse = |message| refuse(at, message);
    let &[steps, samples, classes] = &log_probs[..] else {
        return refuse(format!("expected log-probabilities [t, n, c], but got {log_probs}"));
    };
    let &[rows, width] = &targets.shape()[..] else {
        return refuse(format!("expected targets [n, s], but got {}", targets.shape()));
    };
    if [rows, input_lengths.len(), target_lengths.len()] != [samples; 3] {
        return refuse(format!(
            "expected a target, an input length and a target length for each of {samples} samples, but got {rows}, {} and {}",
            input_lengths.len(),
            target_lengths.len()
        ));
    }
    if let Some(length) = input_lengths.iter().find(|&&length| length > steps) {
        return refuse(format!("an input length is {length}, but there are {steps} steps"));
    }
    if let Some(length) = target_lengths.iter().find(|&&length| length > width) {
        return refuse(format!("a target length is {length}, but targets have {width} places"));
    }
    Ok([classes, width])
}
