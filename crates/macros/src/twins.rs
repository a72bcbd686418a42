//! `#[twins]`: from `try_name`, which returns a `Result`, to `name`, which panics.
//!
//! Only signatures are read. Bodies, and whatever else a trait or an `impl` block holds, pass through as they are, so that
//! `syn` needs none of its features for whole files.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, GenericArgument, GenericParam, Generics, Lifetime, PathArguments, Result, Token, Type,
    Visibility, WhereClause, parenthesized,
};

/// The item with the twins written into it.
pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    if let Ok(function) = Function::parse_alone.parse2(item.clone()) {
        return function.with_twin(None);
    }
    // A trait or an `impl` block: what is in its braces, which come last.
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop().filter(|last| is_group(last, Delimiter::Brace)) else {
        return Err(Error::new(proc_macro2::Span::call_site(), "#[twins] is for functions, traits and impl blocks"));
    };
    let members = members.parse2(body.stream())?;
    let names: Vec<String> = members.iter().filter_map(|member| Some(member.function.as_ref()?.to_string())).collect();
    let mut inside = TokenStream::new();
    for Member { function, tokens } in members {
        let missing = |name: &Ident| plain_name(name).is_some_and(|plain| !names.contains(&plain));
        inside.extend(match function.filter(missing) {
            Some(_) => Function::parse_alone.parse2(tokens)?.with_twin(Some(quote!(Self::)))?,
            None => tokens,
        });
    }
    let mut group = Group::new(Delimiter::Brace, inside);
    group.set_span(body.span());
    tokens.push(group.into());
    Ok(tokens.into_iter().collect())
}

/// A member of a trait or an `impl` block; with its name, if it is a function.
struct Member {
    function: Option<Ident>,
    tokens: TokenStream,
}

fn members(input: ParseStream) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    while !input.is_empty() {
        let ahead = input.fork();
        Attribute::parse_outer(&ahead)?;
        ahead.parse::<Visibility>()?;
        let function = match ahead.parse::<Option<Token![fn]>>()? {
            Some(_) => Some(ahead.call(Ident::parse_any)?),
            None => None,
        };
        // It ends with a semicolon, or with the braces of a function's body.
        let mut tokens = TokenStream::new();
        loop {
            let token: TokenTree = input.parse()?;
            let semicolon = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';');
            let ends = semicolon || is_group(&token, Delimiter::Brace) && !input.peek(Token![;]);
            tokens.extend([token]);
            if ends {
                break;
            }
        }
        members.push(Member { function, tokens });
    }
    Ok(members)
}

/// A function: its signature taken apart, its body as it is.
struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    name: Ident,
    generics: Generics,
    receiver: Option<TokenStream>,
    arguments: Vec<(Ident, Type)>,
    output: Type,
    clause: Option<WhereClause>,
    body: TokenTree,
}

impl Function {
    fn parse_alone(input: ParseStream) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let visibility = input.parse()?;
        input.parse::<Token![fn]>()?;
        let name = input.parse()?;
        let generics = input.parse()?;
        let inside;
        parenthesized!(inside in input);
        let receiver = receiver(&inside)?;
        let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&inside)?;
        let arguments = arguments.into_iter().map(|Argument(name, of)| (name, of)).collect();
        input.parse::<Token![->]>()?;
        let output = input.parse()?;
        let (clause, body) = (input.parse()?, input.parse()?);
        Ok(Function { attributes, visibility, name, generics, receiver, arguments, output, clause, body })
    }

    /// `try_name_`, where `#[in_place]` asks for it: `self` becomes what `try_name` gives.
    fn in_place(&self) -> Option<Result<Function>> {
        self.attributes.iter().find(|attribute| is_in_place(attribute))?;
        let Function { visibility, name, generics, arguments, clause, .. } = self;
        let (plain, values) = (plain_name(name)?, arguments.iter().map(|(name, _)| name));
        let (in_place, types) = (format!("{plain}_"), types(generics));
        let parameters = arguments.iter().map(|(name, of)| quote!(#name: #of));
        let bounds = clause.iter().flat_map(|clause| &clause.predicates);
        let method = format_ident!("try_{in_place}", span = name.span());
        // An operand must have a shape that expands to that of `self`, and not overlap it.
        let operands = arguments.iter().filter(|(_, of)| is_operand(of)).map(|(name, _)| name);
        let doc = format!(" [`{plain}`](Self::{plain}) in place: `self` becomes the result.");
        let written = quote! {
            #[doc = #doc]
            #visibility fn #method #generics (&mut self, #(#parameters),*) -> Result<(), Self::Error>
            where
                Self: crate::ops::InPlace,
                #(#bounds),*
            {
                let at = crate::Site::here(#in_place);
                self.check_write(None, at)?;
                #(let #operands = crate::ops::readable(self, #operands, at)?;)*
                let value = self.#name #types (#(#values),*)?;
                self.put(value, at)
            }
        };
        Some(Function::parse_alone.parse2(written))
    }

    /// The twin, then this. `owner` is the path by which it is called where it has no receiver.
    fn with_twin(self, owner: Option<TokenStream>) -> Result<TokenStream> {
        let in_place = self.in_place();
        let Function { attributes, visibility, name, generics, receiver, arguments, output, clause, body } = self;
        let attributes = attributes.into_iter().filter(|attribute| !is_in_place(attribute));
        let plain = plain_name(&name).ok_or_else(|| Error::new(name.span(), "its name must begin with `try_`"))?;
        check_site(&body, &plain)?;
        let twin = format_ident!("{plain}", span = name.span());
        let (mut docs, others): (Vec<_>, Vec<_>) = attributes.partition(|attribute| attribute.path().is_ident("doc"));
        // What stands under `# Errors` is said of both, of the twin as `# Panics`.
        let heading = docs.iter().position(|doc| doc.to_token_stream().to_string().contains("# Errors"));
        let (panics, errors) = match heading.map(|heading| docs.split_off(heading)) {
            Some(section) => {
                let text = &section[1..];
                (quote!(#[doc = " # Panics"] #(#text)*), quote!(#(#text)*))
            }
            None => (
                quote! {
                    ///
                    /// Panics at the caller's line where the twin that begins with `try_` returns an error.
                },
                quote! {
                    ///
                    /// What the other one panics with.
                },
            ),
        };
        let result = success(&output)?;
        let parameters: Vec<_> = arguments.iter().map(|(name, of)| quote!(#name: #of)).collect();
        let values = arguments.iter().map(|(name, _)| name);
        let inputs = receiver.iter().chain(&parameters);
        let inputs = quote!(#(#inputs),*);
        let place = if receiver.is_some() { Some(quote!(self.)) } else { owner };
        let types = types(&generics);
        let link = match &place {
            Some(_) => format!("[`{plain}`](Self::{plain}), with the error as a value."),
            None => format!("[`{plain}`], with the error as a value."),
        };
        let in_place = match in_place {
            Some(function) => Some(function?.with_twin(owner_of_methods())?),
            None => None,
        };
        Ok(quote! {
            #in_place

            #(#docs)*
            #panics
            #(#others)*
            #[track_caller]
            #visibility fn #twin #generics (#inputs) -> #result #clause {
                match #place #name #types (#(#values),*) {
                    Ok(result) => result,
                    Err(error) => crate::raise(error),
                }
            }

            #[doc = #link]
            ///
            /// # Errors
            #errors
            #(#others)*
            #[track_caller]
            #visibility fn #name #generics (#inputs) -> #output #clause #body
        })
    }
}

fn is_in_place(attribute: &Attribute) -> bool {
    attribute.path().is_ident("in_place")
}

/// `impl Operand<Self>`.
fn is_operand(of: &Type) -> bool {
    of.to_token_stream().to_string().replace(' ', "") == "implOperand<Self>"
}

fn owner_of_methods() -> Option<TokenStream> {
    Some(quote!(Self::))
}

struct Argument(Ident, Type);

impl Parse for Argument {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Argument(name, input.parse()?))
    }
}

/// `self`, `&self`, `&'a self` or `&mut self`, with the comma after it.
fn receiver(input: ParseStream) -> Result<Option<TokenStream>> {
    let and = input.parse::<Option<Token![&]>>()?;
    let lifetime = if and.is_some() { input.parse::<Option<Lifetime>>()? } else { None };
    let mutable = if and.is_some() { input.parse::<Option<Token![mut]>>()? } else { None };
    let Some(this) = input.parse::<Option<Token![self]>>()? else { return Ok(None) };
    input.parse::<Option<Token![,]>>()?;
    Ok(Some(quote!(#and #lifetime #mutable #this)))
}

/// `::<A, B>`: the type and constant parameters, which the compiler may not find by itself.
fn types(generics: &Generics) -> Option<TokenStream> {
    let names: Vec<&Ident> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(&parameter.ident),
            GenericParam::Const(parameter) => Some(&parameter.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    (!names.is_empty()).then(|| quote!(::<#(#names),*>))
}

/// `T` of `Result<T, E>`.
fn success(output: &Type) -> Result<&Type> {
    if let Type::Path(path) = output
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(success)) = arguments.args.first()
    {
        return Ok(success);
    }
    Err(Error::new_spanned(output, "a function that has a twin returns a `Result`"))
}

/// `name` of `try_name`.
fn plain_name(name: &Ident) -> Option<String> {
    name.to_string().strip_prefix("try_").map(str::to_owned)
}

/// Refuses a `Site::here("name")` of another name.
fn check_site(body: &TokenTree, plain: &str) -> Result<()> {
    let TokenTree::Group(group) = body else { return Ok(()) };
    let mut after_here = false;
    for token in group.stream() {
        match &token {
            TokenTree::Group(inside) if after_here => {
                let literal = inside.stream().to_string();
                let named = literal.trim_matches('"');
                // What Rust keeps for itself has an underscore, as `where_`.
                let keyword = syn::parse_str::<Ident>(named).is_err() && plain.strip_suffix('_') == Some(named);
                if literal.starts_with('"') && named != plain && !keyword {
                    return Err(Error::new(inside.span(), format!("this operation is `{plain}`")));
                }
            }
            TokenTree::Group(_) => check_site(&token, plain)?,
            _ => {}
        }
        after_here = match &token {
            TokenTree::Ident(ident) => ident == "here",
            _ => false,
        };
    }
    Ok(())
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}
