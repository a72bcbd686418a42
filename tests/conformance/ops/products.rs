//! Matrix products.

use wengert_tensor::ops::Products;

use super::super::call::Call;
use super::super::value::{Array, Attempt};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    Ok(match call.op {
        "matmul" => float(call.float(0, "self")?.try_matmul(&call.float(1, "other")?)?),
        _ => None,
    })
}
