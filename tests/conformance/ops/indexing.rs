//! Indexed reads, and joining.

use wengert_tensor::ops::{
    IndexItem, Indexing, Indexing2d, ItemIndexing, Nonzero, try_cat, try_hstack, try_meshgrid, try_one_hot, try_stack,
    try_vstack,
};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Given, Stop, Value};
use super::{float, floats};

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let dim = |position| call.integer(position, "dim").map(Option::unwrap_or_default);
    let x = || call.float(0, "self");
    Ok(match call.op {
        "cat" => float(try_cat(&call.floats(0, "tensors")?, dim(1)?)?),
        "stack" => float(try_stack(&call.floats(0, "tensors")?, dim(1)?)?),
        "hstack" => float(try_hstack(&call.floats(0, "tensors")?)?),
        "vstack" => float(try_vstack(&call.floats(0, "tensors")?)?),
        "meshgrid" => {
            let indexing = match call.text(call.count(), "indexing")? {
                Some("xy") => Indexing2d::Cartesian,
                _ => Indexing2d::Matrix,
            };
            floats(try_meshgrid(&call.rest(0)?, indexing)?)
        }
        "index_select" => float(x()?.try_index_select(dim(1)?, call.ints(2, "index")?)?),
        "gather" => float(x()?.try_gather(dim(1)?, call.ints(2, "index")?)?),
        "take" => float(x()?.try_take(call.ints(1, "index")?)?),
        "take_along_dim" => float(x()?.try_take_along_dim(call.ints(1, "indices")?, call.integer(2, "dim")?)?),
        "masked_select" => float(x()?.try_masked_select(call.bools(1, "mask")?)?),
        "getitem" => float(call.float(0, "x")?.try_index(&items(call, 1, "items")?)?),
        "nonzero" => Some(vec![Value::Int(match call.value(0, "self")? {
            Value::Float(x) => x.try_nonzero()?,
            Value::Int(x) => x.try_nonzero()?,
            Value::Bool(x) => x.try_nonzero()?,
        })]),
        "where" if call.count() == 1 => {
            let indices = match call.value(0, "condition")? {
                Value::Float(x) => x.try_where_nonzero()?,
                Value::Int(x) => x.try_where_nonzero()?,
                Value::Bool(x) => x.try_where_nonzero()?,
            };
            Some(indices.into_iter().map(Value::Int).collect())
        }
        "nn.functional.one_hot" => {
            let classes = call.integer(1, "num_classes")?.and_then(|classes| usize::try_from(classes).ok());
            Some(vec![Value::Int(try_one_hot(call.ints(0, "self")?, classes)?)])
        }
        _ => None,
    })
}

/// Returns the items of an argument that is an index, such as slices and positions.
pub fn items<A: Array>(call: &Call<A>, position: usize, name: &str) -> Result<Vec<IndexItem>, Stop> {
    let item = |given: &Given<A>| match given {
        Given::Integer(place) => Ok(IndexItem::At(*place as isize)),
        Given::Slice([start, end, step]) => {
            let bound = |bound: Option<i64>| bound.map(|bound| bound as isize);
            Ok(IndexItem::Slice((bound(*start), bound(*end), bound(*step).unwrap_or(1)).into()))
        }
        Given::None => Ok(IndexItem::NewAxis),
        Given::Ellipsis => Ok(IndexItem::Ellipsis),
        Given::Tensor(Value::Int(places)) => Ok(IndexItem::Positions(places.clone())),
        Given::Tensor(Value::Bool(mask)) => Ok(IndexItem::Mask(mask.clone())),
        _ => Err(call.not_built("this kind of index")),
    };
    call.items(position, name)?.iter().map(item).collect()
}
