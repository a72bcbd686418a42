//! Operations along dimensions: reductions, order, running sums, normalization.

pub(crate) mod covariance;
pub(crate) mod cumulative;
pub(crate) mod distinct;
pub(crate) mod extremes;
pub(crate) mod integrals;
pub(crate) mod lane_array;
pub(crate) mod normalization;
pub(crate) mod norms;
pub(crate) mod quantiles;
pub(crate) mod reductions;
pub(crate) mod search;
pub(crate) mod softmax;
pub(crate) mod sorting;
pub(crate) mod statistics;
