//! Attributes of the wengert crates.

mod module;
mod precompiled;
mod twins;

use proc_macro::TokenStream;

/// Writes, beside each `fn try_name` of a trait, an `impl` block or alone, its twin `name`, which panics where `try_name`
/// returns an error.
///
/// ```text
/// #[twins]
/// pub trait Activations: TensorLike<Elem: Float> {
///     /// x / (1 + |x|). NaN at ±∞. PyTorch: `softsign`.
///     fn try_softsign(&self) -> Result<Self, Self::Error> {
///         let at = Site::here("softsign");
///         …
///     }
/// }
/// ```
///
/// The twin takes the same arguments, generics and bounds, returns what is in `Ok`, and gets the documentation; `try_name` is
/// documented by a reference to it. What the documentation says under `# Errors`, its last section, stands under `# Panics`
/// in the twin's, and under `# Errors` in that of `try_name`; without it, both get a sentence. Both are `#[track_caller]`. A function that has its
/// twin already, in the same trait or block, is left as it is. The operation that a `Site::here("name")` names must be the
/// twin's: anything else does not compile.
///
/// A method of a trait or block whose last argument is `keepdim: bool` is written twice: as `try_name`, without that argument,
/// where it is false, and as `try_name_keepdim`, where it is true; each with its twin. The form with the boolean is
/// `try_name_with`, hidden from the documentation.
///
/// `#[in_place]` beside a method of a trait over `TensorLike` writes two more: `try_name_` and `name_`, for those whose `self` can
/// be written to (`InPlace`). A left side with several elements in one place is refused, and operands that do not expand to it;
/// the result takes its place. Operands are the arguments of the types `impl ArrayOperand<Self>`, `impl Operand<Self>` and
/// `Option<Argument<Self>>`. A mask takes its place as ones and zeros. Two more forms:
///
/// - `#[in_place(Binary::Add)]`: `self` is updated by this operation, without a tensor for the result where that is possible.
/// - `#[in_place(reads(source))]`: operands have shapes of their own. The result must have the shape of `self`, and the operands
///   named here, if any, must not overlap it.
///
/// The crate that uses this has a function `raise` at its root, which panics with an error.
#[proc_macro_attribute]
pub fn twins(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    twins::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Compiles a function that is generic over the element type in its own crate, once for each type, instead of in every crate that
/// calls it.
///
/// rustc compiles a generic function at `opt-level` 2 and 3 in the crate that names its types, here in every program of a user.
/// The attribute leaves the signature as it is and replaces the body: an inlined choice among functions that are not generic.
///
/// ```text
/// #[precompiled]
/// fn twice<T: Float>(x: &Tensor<T>) -> Tensor<T> { body }
/// ```
///
/// becomes, in short,
///
/// ```text
/// #[inline(always)]
/// fn twice<T: Float>(x: &Tensor<T>) -> Tensor<T> {
///     fn generic<T: Float>(x: &Tensor<T>) -> Tensor<T> { body }
///     fn single(x: &Tensor<f32>) -> Tensor<f32> { generic::<f32>(x) }
///     fn double(x: &Tensor<f64>) -> Tensor<f64> { generic::<f64>(x) }
///     match T { f32 => single(x), f64 => double(x) }
/// }
/// ```
///
/// where a method of `Float` chooses the function when the program is compiled. The function has one type parameter, bound by `Float`
/// or `Element` (of whose types f32, f64 and i64 are compiled in advance, the others as before). Its arguments are plain names, without
/// `impl Trait`: pass closures as `&mut dyn FnMut`. It must not need its caller's line.
///
/// On an `impl` block the attribute changes every method without type parameters and `impl Trait` of its own, unless its name begins
/// with `try_`, or it is marked `#[inline]` or `#[track_caller]`.
#[proc_macro_attribute]
pub fn precompiled(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    precompiled::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements the trait `Module`, which must be in scope, for a struct: its children are its fields, in their order, by their
/// names.
///
/// ```text
/// #[derive(Module)]
/// struct Mlp {
///     fc1: Linear,
///     blocks: Vec<Block>,
///     head: Option<Linear>,
///     #[module(skip)]
///     width: usize,
/// }
/// ```
///
/// gives the paths `fc1.weight`, `blocks.0.…`, `head.bias`. A field with `#[module(skip)]` is no child. The only field of a tuple
/// struct adds no name to the paths.
///
/// The element type is the struct's type parameter `T` where it has one, otherwise `f32`; `#[module(f64)]` on the struct says
/// another.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(item: TokenStream) -> TokenStream {
    module::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
