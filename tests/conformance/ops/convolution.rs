//! Convolutions, poolings, interpolation.

use wengert_tensor::Sizes;
use wengert_tensor::ops::{
    AdaptivePooling, Columns, ConvOptions, Convolution, InterpolateMode, Interpolation, PoolOptions, Pooling,
};

use super::super::call::Call;
use super::super::value::{Array, Attempt, Stop, Value};
use super::float;

pub fn attempt<A: Array>(call: &Call<A>) -> Attempt<A> {
    let Some(name) = call.op.strip_prefix("nn.functional.") else { return Ok(None) };
    let input = || call.float(0, "input");
    let pooled = || Ok::<_, Stop>((call.float(0, "input")?, call.sizes(1, "kernel_size")?));
    let size = || call.sizes(1, "output_size");
    Ok(match name {
        "conv1d" | "conv2d" | "conv_transpose1d" | "conv_transpose2d" => {
            let (x, weight, bias) = (input()?, call.float(1, "weight")?, call.float_or_none(2, "bias")?);
            let (bias, options) = (bias.as_ref(), conv_options(call, name.contains("transpose"))?);
            float(match name {
                "conv1d" => x.try_conv1d(&weight, bias, &options)?,
                "conv2d" => x.try_conv2d(&weight, bias, &options)?,
                "conv_transpose1d" => x.try_conv_transpose1d(&weight, bias, &options)?,
                _ => x.try_conv_transpose2d(&weight, bias, &options)?,
            })
        }
        "max_pool1d" | "max_pool2d" => {
            let (x, kernel) = pooled()?;
            let mut options = pool_options(call)?.ceil_mode(call.flag(5, "ceil_mode", false)?);
            if let Some(dilation) = sizes(call, 4, "dilation")? {
                options = options.dilation(dilation);
            }
            match (name, call.flag(6, "return_indices", false)?) {
                ("max_pool1d", false) => float(x.try_max_pool1d(kernel, &options)?),
                (_, false) => float(x.try_max_pool2d(kernel, &options)?),
                (name, true) => {
                    let (values, indices) = match name {
                        "max_pool1d" => x.try_max_pool1d_with_indices(kernel, &options)?,
                        _ => x.try_max_pool2d_with_indices(kernel, &options)?,
                    };
                    Some(vec![Value::Float(values), Value::Int(indices)])
                }
            }
        }
        "avg_pool1d" | "avg_pool2d" => {
            let (x, kernel) = pooled()?;
            let mut options = pool_options(call)?.ceil_mode(call.flag(4, "ceil_mode", false)?);
            options = options.count_include_pad(call.flag(5, "count_include_pad", true)?);
            if let Some(divisor) = call.integer(6, "divisor_override")? {
                options = options.divisor_override(divisor as usize);
            }
            float(match name {
                "avg_pool1d" => x.try_avg_pool1d(kernel, &options)?,
                _ => x.try_avg_pool2d(kernel, &options)?,
            })
        }
        "adaptive_avg_pool1d" => float(input()?.try_adaptive_avg_pool1d(size()?)?),
        "adaptive_avg_pool2d" => float(input()?.try_adaptive_avg_pool2d(size()?)?),
        "adaptive_max_pool1d" => float(input()?.try_adaptive_max_pool1d(size()?)?),
        "adaptive_max_pool2d" => float(input()?.try_adaptive_max_pool2d(size()?)?),
        "unfold" => {
            let other = |position, name, default: i32| {
                Ok::<_, Stop>(sizes(call, position, name)?.unwrap_or(Sizes::from(default)))
            };
            let (dilation, padding, stride) =
                (other(2, "dilation", 1)?, other(3, "padding", 0)?, other(4, "stride", 1)?);
            float(input()?.try_im2col(call.sizes(1, "kernel_size")?, dilation, padding, stride)?)
        }
        "interpolate" => {
            let align_corners = call.flag(4, "align_corners", false)?;
            let mode = match call.text(3, "mode")? {
                None | Some("nearest") => InterpolateMode::Nearest,
                Some("nearest-exact") => InterpolateMode::NearestExact,
                Some("linear" | "bilinear" | "trilinear") => InterpolateMode::Linear { align_corners },
                Some("bicubic") => InterpolateMode::Cubic { align_corners },
                Some("area") => InterpolateMode::Area,
                Some(other) => return Err(call.not_built(other)),
            };
            float(input()?.try_interpolate(call.sizes(1, "size")?, mode)?)
        }
        _ => None,
    })
}

fn sizes<A: Array>(call: &Call<A>, position: usize, name: &str) -> Result<Option<Sizes>, Stop> {
    Ok(call.integers(position, name)?.map(Sizes::from))
}

fn conv_options<A: Array>(call: &Call<A>, transposed: bool) -> Result<ConvOptions, Stop> {
    let mut options = ConvOptions::default();
    if let Some(stride) = sizes(call, 3, "stride")? {
        options = options.stride(stride);
    }
    options = match call.text(4, "padding") {
        Ok(Some("same")) => options.same(),
        Ok(_) => options,
        Err(_) => match sizes(call, 4, "padding")? {
            Some(padding) => options.padding(padding),
            None => options,
        },
    };
    let (dilation, groups) = if transposed { (7, 6) } else { (5, 6) };
    if transposed && let Some(more) = sizes(call, 5, "output_padding")? {
        options = options.output_padding(more);
    }
    if let Some(dilation) = sizes(call, dilation, "dilation")? {
        options = options.dilation(dilation);
    }
    Ok(options.groups(call.integer(groups, "groups")?.unwrap_or(1) as usize))
}

fn pool_options<A: Array>(call: &Call<A>) -> Result<PoolOptions, Stop> {
    let mut options = PoolOptions::default();
    if let Some(stride) = sizes(call, 2, "stride")? {
        options = options.stride(stride);
    }
    if let Some(padding) = sizes(call, 3, "padding")? {
        options = options.padding(padding);
    }
    Ok(options)
}
