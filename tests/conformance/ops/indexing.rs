//! Reading by index, and joining.

use wengert_tensor::ops::{Indexing, try_cat, try_stack};

use super::super::call::Call;
use super::super::value::{Array, Attempt};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let dim = |position| call.integer(position, "dim").map(Option::unwrap_or_default);
    Ok(match call.op {
        "cat" => float(try_cat(&call.floats(0, "tensors")?, dim(1)?)?),
        "stack" => float(try_stack(&call.floats(0, "tensors")?, dim(1)?)?),
        "index_select" => float(call.float(0, "self")?.try_index_select(dim(1)?, call.ints(2, "index")?)?),
        "gather" => float(call.float(0, "self")?.try_gather(dim(1)?, call.ints(2, "index")?)?),
        _ => None,
    })
}
