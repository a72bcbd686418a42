//! The derive macro `#[derive(Module)]`. The children of a struct are its fields.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, GenericParam, Index, Result, Type, parse_quote};

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "#[derive(Module)] is for structs"));
    };
    let element = element(&input)?;
    let (mut names, mut places, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for (position, field) in data.fields.iter().enumerate() {
        if is_skipped(field)? {
            continue;
        }
        let index = Index::from(position);
        let (name, place) = match &field.ident {
            Some(name) => (name.to_string().trim_start_matches("r#").to_owned(), name.to_token_stream()),
            None => (position.to_string(), index.to_token_stream()),
        };
        names.push(name);
        places.push(place);
        types.push(&field.ty);
    }
    // The child of a tuple struct with one field adds no name to the path: `struct Model(Sequential)`.
    if matches!(data.fields, Fields::Unnamed(_)) && names.len() == 1 {
        names[0].clear();
    }
    let mut generics = input.generics.clone();
    let parameters: Vec<String> = generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    for of in types.iter().filter(|of| mentions(of, &parameters)) {
        generics.make_where_clause().predicates.push(parse_quote!(#of: Module<#element>));
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
                #(each(#names, &self.#places);)*
            }

            fn children_mut<'m>(&'m mut self, each: &mut dyn ::core::ops::FnMut(&str, &'m mut dyn Module<#element>)) {
                #(each(#names, &mut self.#places);)*
            }
        }
    })
}

/// Returns the element type: the type in `#[module(f64)]`, otherwise the type parameter `T`, otherwise `f32`.
fn element(input: &DeriveInput) -> Result<Type> {
    if let Some(attribute) = input.attrs.iter().find(|attribute| attribute.path().is_ident("module")) {
        return attribute.parse_args();
    }
    let own = |parameter: &GenericParam| matches!(parameter, GenericParam::Type(of) if of.ident == "T");
    Ok(if input.generics.params.iter().any(own) { parse_quote!(T) } else { parse_quote!(f32) })
}

/// Returns true if the field has `#[module(skip)]`.
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

/// Returns true if a type contains one of these names.
fn mentions(of: &Type, names: &[String]) -> bool {
    fn any(tokens: TokenStream, names: &[String]) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => names.iter().any(|name| ident == name),
            TokenTree::Group(group) => any(group.stream(), names),
            _ => false,
        })
    }
    any(of.to_token_stream(), names)
}
