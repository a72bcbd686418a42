//! Products of matrices and vectors, and contractions.

use wengert_tensor::ops::{Blas, Contracted, Contractions, LinearMaps, Products, Vectors, try_einsum};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Given, Stop};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let x = || call.float(0, "self");
    let y = |name| call.float(1, name);
    let z = |name| call.float(2, name);
    let factor = |name| Ok::<f64, Stop>(call.number(9, name)?.unwrap_or(1.0));
    Ok(match call.op {
        "matmul" => float(x()?.try_matmul(&y("other")?)?),
        "mm" => float(x()?.try_mm(&y("mat2")?)?),
        "bmm" => float(x()?.try_bmm(&y("mat2")?)?),
        "mv" => float(x()?.try_mv(&y("vec")?)?),
        "dot" => float(x()?.try_dot(&y("tensor")?)?),
        "inner" => float(x()?.try_inner(&y("other")?)?),
        "outer" => float(x()?.try_outer(&y("vec2")?)?),
        "kron" => float(x()?.try_kron(&y("other")?)?),
        "trace" => float(x()?.try_trace()?),
        "addmm" => float(x()?.try_addmm(&y("mat1")?, &z("mat2")?, factor("beta")?, factor("alpha")?)?),
        "addmv" => float(x()?.try_addmv(&y("mat")?, &z("vec")?, factor("beta")?, factor("alpha")?)?),
        "baddbmm" => float(x()?.try_baddbmm(&y("batch1")?, &z("batch2")?, factor("beta")?, factor("alpha")?)?),
        "addbmm" => float(x()?.try_addbmm(&y("batch1")?, &z("batch2")?, factor("beta")?, factor("alpha")?)?),
        "addr" => float(x()?.try_addr(&y("vec1")?, &z("vec2")?, factor("beta")?, factor("alpha")?)?),
        "linalg.vecdot" => float(call.float(0, "x")?.try_vecdot(&y("y")?, call.integer(2, "dim")?.unwrap_or(-1))?),
        "linalg.cross" => float(x()?.try_cross(&y("other")?, call.integer(2, "dim")?.unwrap_or(-1))?),
        "cross" => {
            let shape = x()?.shape();
            let first = shape.iter().position(|&size| size == 3).map(|axis| axis as isize);
            float(x()?.try_cross(&y("other")?, call.integer(2, "dim")?.or(first).unwrap_or(-1))?)
        }
        "tensordot" => {
            let (x, y) = (call.float(0, "a")?, call.float(1, "b")?);
            float(x.try_tensordot(&y, contracted(call)?)?)
        }
        "einsum" => {
            let equation = call.text(0, "equation")?.ok_or_else(|| call.not_built("no equation"))?;
            float(try_einsum(equation, &call.rest(1)?)?)
        }
        "nn.functional.linear" => {
            let bias = call.float_or_none(2, "bias")?;
            float(call.float(0, "input")?.try_linear(&y("weight")?, bias.as_ref())?)
        }
        "nn.functional.bilinear" => {
            let bias = call.float_or_none(3, "bias")?;
            float(call.float(0, "input1")?.try_bilinear(&y("input2")?, &z("weight")?, bias.as_ref())?)
        }
        _ => None,
    })
}

/// Returns the argument `dims` of a contraction: a number of dimensions, or two lists of dimensions.
fn contracted<A: Array>(call: &Call<A>) -> Result<Contracted, Stop> {
    let Some(Given::List(lists)) = call.given(2, "dims") else {
        return Ok(Contracted::from(call.size(2, "dims")?));
    };
    let list = |given: &Given<A>| match given {
        Given::List(items) => items
            .iter()
            .map(|item| match item {
                Given::Integer(dim) => Ok(*dim as isize),
                _ => Err(call.not_built("this kind of 'dims'")),
            })
            .collect::<Result<Vec<isize>, Stop>>(),
        _ => Err(call.not_built("this kind of 'dims'")),
    };
    match &lists[..] {
        [first, second] => Ok(Contracted::from((&list(first)?[..], &list(second)?[..]))),
        _ => Err(call.not_built("this kind of 'dims'")),
    }
}
