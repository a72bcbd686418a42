//! Attributes of the wengert crates.

mod module;
mod precompiled;
mod syntax;
mod twins;

use proc_macro::TokenStream;

/// Writes a twin `name` for a function `try_name`, or for each function `try_name` of a trait or an `impl` block. The twin panics where
/// `try_name` returns an error.
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
/// The twin takes the same arguments, generics and bounds, and returns the type inside of `Ok`. The twin gets the documentation, and the
/// documentation of `try_name` links to the twin. The text of the last section, `# Errors`, stands under `# Panics` in the twin's
/// documentation and under `# Errors` in the documentation of `try_name`. Without this section, both functions get a sentence that follows
/// from the types of the arguments. Both are `#[track_caller]`. A function that already has a twin in the same trait or block is not
/// changed. If `Site::here("name")` occurs in the body, its name must be the name of the twin; otherwise the code does not compile. For
/// a twin such as `where_`, whose name would be a keyword without the underscore, `Site::here("where")` is also accepted.
///
/// `#[keepdim]` on a method gives its body one more argument, `keepdim: bool`. The method is written twice without that argument: as
/// `try_name`, which passes false, and as `try_name_keepdim`, which passes true. Each gets a twin. The method with the argument is named
/// `try_name_with`, and is hidden from the documentation. The source omits the argument, because error messages of the compiler quote the
/// signature from the source. Users call methods without this argument.
///
/// `#[in_place]` on a method of a trait over `TensorLike` writes two more methods, `try_name_` and `name_`, for a
/// `self` that can be written to (`InPlace`). The result replaces `self`. Both methods refuse a `self` in which several
/// elements share one position in memory. They refuse operands that do not expand to the shape of `self`, and operands
/// that partly overlap `self` in memory. Operands are the arguments of the types `impl ArrayOperand<Self>`, `impl
/// Operand<Self>` and `Option<Argument<Self>>`. If the method returns a mask, ones and zeros are written to `self`. The
/// attribute has three more forms:
///
/// - `#[in_place(Binary::Add)]`: this operation updates `self`, without a new tensor for the result if possible.
/// - `#[in_place(reads(source))]`: operands may have any shape. The result must have the shape of `self`. The operands
///   named here, if any, must not partly overlap `self` in memory.
/// - `#[in_place(by(add_slices), reads(source))]`: like the last form, but calls `add_slices(self, arguments…, site)`,
///   which writes the result to `self`. This function must keep the shape of `self`, and can reuse its memory.
///
/// `#[twins(blanket)]` also implements the trait for every type that implements its supertraits. All methods of the trait must have bodies.
///
/// The crate that uses this attribute must have a function `raise` at its root, which panics with an error.
#[proc_macro_attribute]
pub fn twins(arguments: TokenStream, item: TokenStream) -> TokenStream {
    twins::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Compiles a generic function in the crate that defines it, once for each common element type: f32, f64 and, if the bound is `Element`, i64.
/// Without this attribute, every crate that calls the function compiles it.
///
/// rustc compiles a generic function at `opt-level` 2 and 3 in the crate that chooses the type arguments. For the functions of wengert,
/// this crate is the user's program. The attribute does not change the signature. It replaces the body by an inlined choice among functions
/// that are not generic.
///
/// ```text
/// #[precompiled]
/// fn twice<T: Float>(x: &Tensor<T>) -> Tensor<T> { body }
/// ```
///
/// becomes, in short:
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
/// A method of the bound chooses one of these functions when the program is compiled. The generic function must have one type parameter,
/// bound by `Float` or `Element`. For `Element`, the types f32, f64 and i64 are compiled in advance, and callers compile the others. The
/// arguments must be plain names, without `impl Trait`: pass closures as `&mut dyn FnMut`. The function must not need its caller's line.
/// A method becomes a free function, so the result cannot borrow from `&self` without a named lifetime if another argument is a reference.
///
/// On an `impl` block the attribute changes every method that has no type parameters, no constant parameters and no `impl Trait` of its
/// own. It leaves out methods whose names begin with `try_`, and methods with `#[inline]`, `#[track_caller]` or `#[cfg]`.
#[proc_macro_attribute]
pub fn precompiled(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    precompiled::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements the trait `Module`, which must be in scope, for a struct. The children are the fields, in their order and
/// with their names.
///
/// ```text
/// #[derive(Module)]
/// struct Mlp {
///     fc1: Linear,
///     blocks: Vec<Block>,
///     head: Option<Linear>,
///     width: usize,
///     #[module(skip)]
///     options: Options,
/// }
/// ```
///
/// Paths of this struct are for example `fc1.weight`, `blocks.0.…`, `head.bias`. A field with `#[module(skip)]` is not a child, and neither
/// is plain data. Plain data are numbers, `bool`, text, `PathBuf`, `Duration` and `PhantomData`. References to them are plain too, and so
/// are `Option`, `Vec`, `Box`, arrays and tuples of them. The only child of a tuple struct adds no name to the paths.
///
/// The element type is the struct's type parameter `T` if it has one. Otherwise it is the type that the fields name, as in
/// `Parameter<f64>` and `Vec<Linear<f64>>`, and `f32` if they name none. Fields that name both types are an error. The type of a `Buffer`
/// counts only if all children are buffers. `#[module(f64)]` on the struct sets another type, as needed for a field whose type is a struct
/// of f64.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(item: TokenStream) -> TokenStream {
    module::expand(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
