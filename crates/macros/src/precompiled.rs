//! The attribute `#[precompiled]`. A generic function with this attribute is compiled in the crate that defines it, once for each common
//! element type. The crates that call it do not compile it again for these types.

use proc_macro2::{Ident, Span, TokenStream, TokenTree, token_stream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Error, GenericParam, Generics, Lifetime, Result, Token, Type, TypeParamBound, WhereClause,
    WherePredicate, parse2,
};

use crate::syntax::{Argument, Function, Item, Receiver, has_ident, with_content};

/// Returns the function, or the `impl` block, with new bodies. The new body of a function or method calls the instance that is compiled for
/// the element type. Methods that are not [eligible](Function::is_eligible) stay the same.
pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    if let Ok(function) = parse2::<Function>(item.clone()) {
        return function.with_dispatching_body(None);
    }
    let item = Item::split(item, "#[precompiled] is for functions and `impl` blocks")?;
    let header = parse2(item.header.clone())?;
    let mut members = TokenStream::new();
    for member in item.members()? {
        let function = member.function.map(|_| parse2::<Function>(member.tokens.clone())).transpose();
        members.extend(match function {
            Ok(Some(function)) if function.is_eligible() => function.with_dispatching_body(Some(&header))?,
            _ => member.tokens,
        });
    }
    Ok(item.with_members(members))
}

/// The header of an `impl` block.
struct ImplHeader {
    generics: Generics,
    self_type: Type,
    implemented_trait: Option<Type>,
}

impl Parse for ImplHeader {
    fn parse(input: ParseStream) -> Result<Self> {
        Attribute::parse_outer(input)?;
        input.parse::<Token![impl]>()?;
        let generics = input.parse()?;
        let first: Type = input.parse()?;
        let second = if input.parse::<Option<Token![for]>>()?.is_some() { Some(input.parse()?) } else { None };
        input.parse::<Option<WhereClause>>()?;
        Ok(match second {
            Some(self_type) => ImplHeader { generics, self_type, implemented_trait: Some(first) },
            None => ImplHeader { generics, self_type: first, implemented_trait: None },
        })
    }
}

impl Function {
    /// Returns true if this method of an `impl` block is compiled in advance. The method must have no type parameters, no constant
    /// parameters and no `impl Trait` of its own. Its name must not begin with `try_`. It must also have no attribute that sets where or
    /// whether it is compiled, or that needs its caller's line.
    fn is_eligible(&self) -> bool {
        let is_lifetime = |parameter: &GenericParam| matches!(parameter, GenericParam::Lifetime(_));
        // Methods that begin with `try_` are public and read their caller's line: `#[twins]` adds `#[track_caller]` to them later.
        let is_public = self.name.to_string().starts_with("try_");
        let prevents_instances = |attribute: &Attribute| {
            ["inline", "track_caller", "cfg"].iter().any(|name| attribute.path().is_ident(name))
        };
        let has_impl = |argument: &Argument| has_ident(argument.ty.to_token_stream(), "impl");
        !is_public
            && self.generics.params.iter().all(is_lifetime)
            && !self.attributes.iter().any(prevents_instances)
            && !self.arguments.iter().any(has_impl)
            && !has_ident(self.output.to_token_stream(), "impl")
    }

    /// Returns the generic parameters of the `impl` block and of the function.
    fn parameters<'a>(&'a self, header: Option<&'a ImplHeader>) -> impl Iterator<Item = &'a GenericParam> {
        header.into_iter().flat_map(|header| &header.generics.params).chain(&self.generics.params)
    }

    /// Returns the function as a free function: the argument `this` replaces the receiver.
    fn to_free_function(&self, header: Option<&ImplHeader>) -> FreeFunction {
        let replace_self = |tokens: TokenStream| match header {
            Some(header) => without_self(tokens, header),
            None => tokens,
        };
        let this = self
            .receiver
            .as_ref()
            .zip(header)
            .map(|(receiver, header)| (quote!(this), receiver_type(receiver, &header.self_type)));
        let argument =
            |argument: &Argument| (argument.name.to_token_stream(), replace_self(argument.ty.to_token_stream()));
        let (names, types): (Vec<_>, Vec<_>) = this.into_iter().chain(self.arguments.iter().map(argument)).unzip();
        let muts = self.receiver.iter().map(|_| None).chain(self.arguments.iter().map(|argument| argument.mutable));
        let output = replace_self(self.output.to_token_stream());
        let used = quote!(#(#types)* #output);
        let is_used = |lifetime: &&Lifetime| has_ident(used.clone(), &lifetime.ident.to_string());
        let lifetimes = self.parameters(header).filter_map(lifetime).filter(is_used).cloned().collect();
        FreeFunction {
            names,
            types,
            muts: muts.collect(),
            lifetimes,
            output,
            body: replace_self(self.body.to_token_stream()),
        }
    }

    /// Returns the function with a body that calls the instance (compiled copy) for the element type.
    fn with_dispatching_body(self, header: Option<&ImplHeader>) -> Result<TokenStream> {
        let element = ElementParameter::find(self.parameters(header), self.where_clause.as_ref(), &self.name)?;
        let FreeFunction { names, types, muts, lifetimes, output: own_output, body: own_body } =
            self.to_free_function(header);
        let Function { attributes, visibility, name, generics, receiver, arguments, output, where_clause, .. } = self;
        let ElementParameter { ident, instances_trait, bound, method, types: compiled, is_open } = element;
        let compiled = compiled.iter().map(|compiled| {
            let compiled = Ident::new(compiled, Span::call_site());
            quote! {
                fn #compiled() -> Self::Of<#compiled> {
                    #[allow(dead_code)]
                    type #ident = #compiled;
                    #[allow(clippy::too_many_arguments)]
                    fn compiled<#(#lifetimes),*>(#(#names: #types),*) #own_output {
                        generic::<#ident>(#(#names),*)
                    }
                    compiled
                }
            }
        });
        let open = is_open.then(|| {
            quote! {
                #[inline(always)]
                fn generic<#ident: ::wengert_tensor::#bound>() -> Self::Of<#ident> {
                    generic::<#ident>
                }
            }
        });
        let inputs = receiver.iter().map(Receiver::to_token_stream).chain(arguments.iter().map(Argument::without_mut));
        let values = receiver.iter().map(|_| quote!(self));
        let values = values.chain(arguments.iter().map(|argument| argument.name.to_token_stream()));
        Ok(quote! {
            #(#attributes)*
            #[inline(always)]
            #visibility fn #name #generics (#(#inputs),*) #output #where_clause {
                #[allow(clippy::too_many_arguments)]
                fn generic<#(#lifetimes,)* #ident: #bound>(#(#muts #names: #types),*) #own_output #own_body
                struct Instances;
                impl ::wengert_tensor::instances::#instances_trait for Instances {
                    type Of<#ident: ::wengert_tensor::#bound> = for<#(#lifetimes),*> fn(#(#types),*) #own_output;
                    #(#[inline(always)] #compiled)*
                    #open
                }
                <#ident as ::wengert_tensor::#bound>::#method::<Instances>()(#(#values),*)
            }
        })
    }
}

/// A function without a receiver: its arguments, the lifetimes that it names, its result and its body.
struct FreeFunction {
    names: Vec<TokenStream>,
    types: Vec<TokenStream>,
    /// For each argument, `mut` if the function declares the argument as `mut`, otherwise `None`.
    muts: Vec<Option<Token![mut]>>,
    lifetimes: Vec<Lifetime>,
    output: TokenStream,
    body: TokenStream,
}

/// The type parameter of a function that is compiled for several types.
struct ElementParameter {
    ident: Ident,
    bound: Ident,
    /// The name of the trait `FloatInstances` or `ElementInstances` of the tensor crate. The expanded code implements it with one function
    /// for each of `types`, and with a generic function for further types.
    instances_trait: Ident,
    /// The name of the method of `bound` that chooses one of these functions: `float_instance` or `element_instance`.
    method: Ident,
    types: &'static [&'static str],
    /// True if there are further element types besides `types`. Callers compile the function for the further types.
    is_open: bool,
}

impl ElementParameter {
    /// Finds the only type parameter of a function and its block. Its bound is `Float` or `Element`, and stands in the list of parameters or
    /// in the function's `where` clause. Returns an error if there is no such parameter, or if there is another type parameter.
    fn find<'a>(
        parameters: impl Iterator<Item = &'a GenericParam>,
        clause: Option<&WhereClause>,
        function: &Ident,
    ) -> Result<Self> {
        let mut types = parameters.filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(parameter),
            _ => None,
        });
        let (Some(parameter), None) = (types.next(), types.next()) else {
            return Err(Error::new(function.span(), "#[precompiled] is for functions of one type parameter"));
        };
        let narrowed = clause.and_then(|clause| match (clause.predicates.first()?, clause.predicates.len()) {
            (WherePredicate::Type(predicate), 1) if is_type(&predicate.bounded_ty, &parameter.ident) => {
                element_bound(predicate.bounds.first()?)
            }
            _ => None,
        });
        if let (Some(clause), None) = (clause, &narrowed) {
            return Err(Error::new_spanned(clause, "#[precompiled] reads one bound of the type parameter here"));
        }
        let Some(bound) = narrowed.or_else(|| element_bound(parameter.bounds.first()?)) else {
            return Err(Error::new_spanned(parameter, "its bound must be `Float` or `Element`"));
        };
        let is_open = bound == "Element";
        let types: &[&str] = if is_open { &["f32", "f64", "i64"] } else { &["f32", "f64"] };
        let instances_trait = Ident::new(&format!("{bound}Instances"), Span::call_site());
        let method = Ident::new(&format!("{}_instance", bound.to_string().to_lowercase()), Span::call_site());
        Ok(ElementParameter { ident: parameter.ident.clone(), bound, instances_trait, method, types, is_open })
    }
}

/// Returns `Float` or `Element` if the bound is one of them, and `None` otherwise.
fn element_bound(bound: &TypeParamBound) -> Option<Ident> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let name = &bound.path.segments.last()?.ident;
    ["Float", "Element"].iter().any(|known| name == known).then(|| name.clone())
}

/// Returns true if `ty` is the identifier `name`.
fn is_type(ty: &Type, name: &Ident) -> bool {
    *name == ty.to_token_stream().to_string()
}

/// Returns the lifetime of a lifetime parameter, or `None` for other parameters.
fn lifetime(parameter: &GenericParam) -> Option<&Lifetime> {
    match parameter {
        GenericParam::Lifetime(parameter) => Some(&parameter.lifetime),
        _ => None,
    }
}

/// Returns the type of the argument that replaces the receiver, such as `&Type` for the receiver `&self` in a block for
/// the type `self_type`.
fn receiver_type(receiver: &Receiver, self_type: &Type) -> TokenStream {
    let Receiver { ampersand, lifetime, mutable, .. } = receiver;
    match ampersand {
        Some(_) => quote!(#ampersand #lifetime #mutable #self_type),
        None => quote!(#self_type),
    }
}

/// Returns the tokens of a method as tokens of a free function: the argument `this` replaces `self`, and the type of
/// the block replaces `Self`.
fn without_self(tokens: TokenStream, header: &ImplHeader) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "self" => {
                out.extend([TokenTree::Ident(Ident::new("this", ident.span()))])
            }
            TokenTree::Ident(ident) if ident == "Self" => {
                let self_type = &header.self_type;
                out.extend(match (&header.implemented_trait, name_after_colons(tokens.clone())) {
                    (Some(implemented), Some(name)) if name.starts_with(char::is_uppercase) => {
                        quote!(<#self_type as #implemented>)
                    }
                    (_, Some(_)) => quote!(<#self_type>),
                    _ => quote!(#self_type),
                });
            }
            TokenTree::Group(group) => {
                out.extend([TokenTree::Group(with_content(&group, without_self(group.stream(), header)))]);
            }
            token => out.extend([token]),
        }
    }
    out
}

/// Returns `name` if the tokens begin with `::name`.
fn name_after_colons(mut tokens: token_stream::IntoIter) -> Option<String> {
    for _ in 0..2 {
        match tokens.next()? {
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            _ => return None,
        }
    }
    Some(tokens.next()?.to_string())
}
