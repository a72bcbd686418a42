//! The states that the paths of CTC go through.

use wengert_tensor::{Error, Shape, Site, Tensor};

use crate::loss::checks::refuse;

/// A logarithm of a probability that is as good as none: it stays finite where it is added up, so that gradients are numbers.
pub(super) const IMPOSSIBLE: f64 = -1e30;

/// The states that a path goes through: a blank, the first label, a blank, … the last label, a blank. One row for each sample, as
/// long as the longest target asks for.
pub(super) struct Paths {
    pub(super) states: usize,
    /// The class of each state, `[n, states]`.
    pub(super) classes: Tensor<i64>,
    /// What is added to the logarithm of a state before the first step, which counts where a sample has no steps.
    pub(super) before: Vec<f64>,
    /// What is added at the first step: only the first two states can come first.
    pub(super) start: Vec<f64>,
    /// What is added where a path skips the blank before a state: it may, between two labels that differ.
    pub(super) skip: Vec<f64>,
    /// The two states in which a path may end, `[n, 2]`, and what is added to each: without labels there is only one.
    pub(super) ends: Tensor<i64>,
    pub(super) end: Vec<f64>,
}

impl Paths {
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
            return refuse(at, format!("the blank is class {blank} of {classes}"));
        }
        let samples = target_lengths.len();
        let states = 2 * target_lengths.iter().max().unwrap_or(&0) + 1;
        let penalty = |allowed: bool| if allowed { 0.0 } else { IMPOSSIBLE };
        let (mut path, mut skip) = (Vec::new(), Vec::new());
        let (mut ends, mut end) = (Vec::new(), Vec::new());
        let targets = targets.to_vec();
        for (sample, &length) in target_lengths.iter().enumerate() {
            let labels = &targets[sample * width..][..length];
            let class_is_wrong = |&&label: &&i64| !(0..classes as i64).contains(&label) || label == blank as i64;
            if let Some(label) = labels.iter().find(class_is_wrong) {
                return refuse(at, format!("target {label} is the blank {blank}, or none of {classes} classes"));
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
            states,
            classes: Tensor::from_vec(path, [samples, states]),
            before: each_state(|state| state == 0),
            start: each_state(|state| state < 2),
            skip,
            ends: Tensor::from_vec(ends, [samples, 2]),
            end,
        })
    }
}

/// Checks that the sizes fit each other. Returns the number of classes and the width of `targets`.
fn check_sizes(
    log_probs: &Shape,
    targets: &Tensor<i64>,
    input_lengths: &[usize],
    target_lengths: &[usize],
    at: Site,
) -> Result<[usize; 2], Error> {
    let refuse = |message| refuse(at, message);
    let &[steps, samples, classes] = &log_probs[..] else {
        return refuse(format!("the logarithms of probabilities are to be [t, n, c], not {log_probs}"));
    };
    let &[rows, width] = &targets.shape()[..] else {
        return refuse(format!("the targets are to be [n, s], not {}", targets.shape()));
    };
    if [rows, input_lengths.len(), target_lengths.len()] != [samples; 3] {
        return refuse(format!(
            "{samples} samples have {rows} targets, {} input lengths and {} target lengths",
            input_lengths.len(),
            target_lengths.len()
        ));
    }
    if let Some(length) = input_lengths.iter().find(|&&length| length > steps) {
        return refuse(format!("an input has length {length}, of {steps} steps"));
    }
    if let Some(length) = target_lengths.iter().find(|&&length| length > width) {
        return refuse(format!("a target has length {length}, of {width} places"));
    }
    Ok([classes, width])
}
