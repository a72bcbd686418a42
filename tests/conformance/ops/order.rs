//! Extremes with their positions, sorting, and order statistics.

use wengert_tensor::Tensor;
use wengert_tensor::ops::{Extremes, Sorting};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Stop, Value};
use super::float;

/// Returns the values and the positions that a method computes, for an operand of any element type.
macro_rules! both {
    ($call:ident, |$x:ident| $body:expr) => {
        match $call.value(0, "self")? {
            Value::Float($x) => {
                let (values, positions): (A, Tensor<i64>) = $body;
                Some(vec![Value::Float(values), Value::Int(positions)])
            }
            Value::Int($x) => {
                let (values, positions) = $body;
                Some(vec![Value::Int(values), Value::Int(positions)])
            }
            Value::Bool($x) => {
                let (values, positions) = $body;
                Some(vec![Value::Bool(values), Value::Int(positions)])
            }
        }
    };
}

/// Returns an extreme of all elements, or along a dimension.
macro_rules! extreme {
    ($call:ident, $all:ident, $along:ident) => {
        if $call.given(1, "dim").is_none() {
            float($call.float(0, "self")?.$all()?)
        } else {
            let (dim, keepdim) = ($call.needed_integer(1, "dim")?, $call.flag(2, "keepdim", false)?);
            both!($call, |x| x.$along(dim, keepdim)?)
        }
    };
}

/// Returns the dimension `dim`, or the last one if none is given.
fn dim<A: Array>(call: &Call<A>, position: usize) -> Result<isize, Stop> {
    Ok(call.integer(position, "dim")?.unwrap_or(-1))
}

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let x = || call.float(0, "self");
    Ok(match call.op {
        "max" => extreme!(call, try_max_all, try_max_with),
        "min" => extreme!(call, try_min_all, try_min_with),
        "aminmax" => {
            let (smallest, largest) = x()?.try_aminmax_with(call.dims(1, "dim")?, call.flag(2, "keepdim", false)?)?;
            Some(vec![Value::Float(smallest), Value::Float(largest)])
        }
        "cummax" => both!(call, |x| x.try_cummax(call.needed_integer(1, "dim")?)?),
        "cummin" => both!(call, |x| x.try_cummin(call.needed_integer(1, "dim")?)?),
        "sort" => {
            let (dim, descending) = (dim(call, 1)?, call.flag(2, "descending", false)?);
            call.flag(3, "stable", false)?;
            both!(call, |x| x.try_sort(dim, descending)?)
        }
        "argsort" => {
            let (dim, descending) = (dim(call, 1)?, call.flag(2, "descending", false)?);
            call.flag(3, "stable", false)?;
            Some(vec![Value::Int(x()?.try_argsort(dim, descending)?)])
        }
        "topk" => {
            let (k, dim) = (call.size(1, "k")?, dim(call, 2)?);
            let largest = call.flag(3, "largest", true)?;
            call.flag(4, "sorted", true)?;
            both!(call, |x| x.try_topk(k, dim, largest)?)
        }
        "kthvalue" => {
            let (k, dim, keepdim) = (call.size(1, "k")?, dim(call, 2)?, call.flag(3, "keepdim", false)?);
            both!(call, |x| x.try_kthvalue_with(k, dim, keepdim)?)
        }
        "median" if call.given(1, "dim").is_none() => float(x()?.try_median_all()?),
        "median" | "mode" => {
            let (dim, keepdim) = (dim(call, 1)?, call.flag(2, "keepdim", false)?);
            if call.op == "mode" {
                both!(call, |x| x.try_mode_with(dim, keepdim)?)
            } else {
                both!(call, |x| x.try_median_with(dim, keepdim)?)
            }
        }
        _ => None,
    })
}
