//! `#[derive(Module)]`: the children of a struct are its fields, except for plain data and fields with `#[module(skip)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericArgument, GenericParam, Index, PathArguments, Result, Type,
    parse_quote,
};

use crate::syntax::has_ident;

/// Returns the implementation of `Module` for a struct.
pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "#[derive(Module)] is for structs"));
    };
    let element = element_type(&input)?;
    let (mut names, mut accessors, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for (position, field) in data.fields.iter().enumerate() {
        if is_skipped(field)? || is_plain(&field.ty) {
            continue;
        }
        let index = Index::from(position);
        let (name, accessor) = match &field.ident {
            Some(name) => (name.to_string().trim_start_matches("r#").to_owned(), name.to_token_stream()),
            None => (position.to_string(), index.to_token_stream()),
        };
        names.push(name);
        accessors.push(accessor);
        types.push(&field.ty);
    }
    // The only child of a tuple struct adds no name to the path: `struct Model(Sequential)`.
    if matches!(data.fields, Fields::Unnamed(_)) && names.len() == 1 {
        names[0].clear();
    }
    let mut generics = input.generics.clone();
    let parameters: Vec<String> = generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    for ty in types.iter().filter(|ty| mentions(ty, &parameters)) {
        generics.make_where_clause().predicates.push(parse_quote!(#ty: Module<#element>));
    }
    let (name, kind) = (&input.ident, input.ident.to_string());
    let (implemented, arguments, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #implemented Module<#element> for #name #arguments #clause {
            fn kind(&self) -> &'static str {
                #kind
            }

            fn children<'m>(&'m self, each: &mut dyn ::core::ops::FnMut(&str, &'m dyn Module<#element>)) {
                #(each(#names, &self.#accessors);)*
            }

            fn children_mut<'m>(&'m mut self, each: &mut dyn ::core::ops::FnMut(&str, &'m mut dyn Module<#element>)) {
                #(each(#names, &mut self.#accessors);)*
            }
        }
    })
}

/// Returns the element type, which is the type in `#[module(f64)]`. Without this attribute, it is the type parameter `T`. Without `T`, it
/// is the floating-point type that the types of the children contain, as in `Parameter<f64>`, or `f32` if there is none. Both types at once
/// are an error. A `Buffer` may have another element type, so buffers count only if there are no other children.
fn element_type(input: &DeriveInput) -> Result<Type> {
    if let Some(attribute) = input.attrs.iter().find(|attribute| attribute.path().is_ident("module")) {
        return attribute.parse_args();
    }
    let is_element_parameter =
        |parameter: &GenericParam| matches!(parameter, GenericParam::Type(ty) if ty.ident == "T");
    if input.generics.params.iter().any(is_element_parameter) {
        return Ok(parse_quote!(T));
    }
    let Data::Struct(data) = &input.data else { return Ok(parse_quote!(f32)) };
    let mut fields = Vec::new();
    for field in &data.fields {
        if !is_skipped(field)? && !is_plain(&field.ty) {
            fields.push(&field.ty);
        }
    }
    let (buffers, others): (Vec<&Type>, Vec<&Type>) =
        fields.into_iter().partition(|ty| mentions(ty, &["Buffer".to_owned()]));
    let contains_name = |types: &[&Type], name: &str| types.iter().any(|ty| mentions(ty, &[name.to_owned()]));
    if contains_name(&others, "f64") && contains_name(&others, "f32") {
        let message = "the fields have elements of f32 and of f64; a module has one type: mark the fields of the other type with \
                       `#[module(skip)]`, or write `#[module(f64)]` above the struct";
        return Err(Error::new_spanned(&input.ident, message));
    }
    let is_double = contains_name(&others, "f64") || others.is_empty() && contains_name(&buffers, "f64");
    Ok(if is_double { parse_quote!(f64) } else { parse_quote!(f32) })
}

/// Returns true if a type is plain data, which is not a module. Plain data are the types in the list, and references, options, vectors,
/// boxes, arrays, slices and tuples of plain data.
fn is_plain(ty: &Type) -> bool {
    const PLAIN: &str = "usize u8 u16 u32 u64 u128 isize i8 i16 i32 i64 i128 f32 f64 \
                         bool char str String PathBuf Duration PhantomData";
    match ty {
        Type::Reference(ty) => is_plain(&ty.elem),
        Type::Array(ty) => is_plain(&ty.elem),
        Type::Slice(ty) => is_plain(&ty.elem),
        Type::Paren(ty) => is_plain(&ty.elem),
        Type::Tuple(ty) => ty.elems.iter().all(is_plain),
        Type::Path(ty) => {
            let Some(last) = ty.path.segments.last() else { return false };
            if PLAIN.split(' ').any(|plain| last.ident == plain) {
                return true;
            }
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
            let is_container = ["Option", "Vec", "Box"].iter().any(|holder| last.ident == holder);
            let is_plain_argument =
                |argument: &GenericArgument| matches!(argument, GenericArgument::Type(ty) if is_plain(ty));
            is_container && arguments.args.iter().all(is_plain_argument)
        }
        _ => false,
    }
}

/// Returns true if the field has `#[module(skip)]`, or an error if its `#[module(…)]` has any other content.
fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(meta.error("expected `skip`"));
            }
            skipped = true;
            Ok(())
        })?;
    }
    Ok(skipped)
}

/// Returns true if a type contains one of these names as an identifier.
fn mentions(ty: &Type, names: &[String]) -> bool {
    names.iter().any(|name| has_ident(ty.to_token_stream(), name))
}
