//! The attribute `#[twins]`. It writes `name`, which panics, from `try_name`, which returns a `Result`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, GenericArgument, GenericParam, Generics, Meta, PathArguments, Result, ReturnType, Token, Type,
    parenthesized, parse_quote, parse2,
};

use crate::syntax::{Argument, Function, Item, Member};

/// Returns the function, trait or `impl` block with twins added to its functions `try_name`, except where a function
/// `name` exists. With the argument `blanket`, also returns the blanket implementation of the trait.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let blanket = match arguments.to_string().as_str() {
        "" => None,
        "blanket" => Some(blanket_implementation(&item)?),
        _ => return Err(Error::new_spanned(arguments, "the only argument of `#[twins]` is `blanket`")),
    };
    if let Ok(function) = parse2::<Function>(item.clone()) {
        return function.with_twin(None);
    }
    let item = Item::split(item, "#[twins] is for functions, traits and impl blocks")?;
    let members = item.members()?;
    let names: Vec<String> = members.iter().filter_map(|member| Some(member.function.as_ref()?.to_string())).collect();
    let mut expanded_members = TokenStream::new();
    for Member { function, tokens } in members {
        let missing = |name: &Ident| plain_name(name).is_some_and(|plain| !names.contains(&plain));
        expanded_members.extend(match function.filter(missing) {
            Some(_) => parse2::<Function>(tokens)?.expand_twins()?,
            None => tokens,
        });
    }
    let item = item.with_members(expanded_members);
    Ok(quote!(#item #blanket))
}

/// Returns the implementation of a trait for every type that implements its supertraits. All methods of the trait must have bodies.
fn blanket_implementation(item: &TokenStream) -> Result<TokenStream> {
    let item = Item::split(item.clone(), "#[twins(blanket)] is for traits")?;
    let mut header =
        item.header.into_iter().skip_while(|token| !matches!(token, TokenTree::Ident(word) if word == "trait"));
    match (header.nth(1), header.next()) {
        (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(colon))) if colon.as_char() == ':' => {
            let supertraits: TokenStream = header.collect();
            Ok(quote!(impl<A: #supertraits> #name for A {}))
        }
        _ => {
            Err(Error::new(Span::call_site(), "#[twins(blanket)] is for traits with supertraits and without generics"))
        }
    }
}

impl Function {
    /// Returns the method `try_name_`, which replaces `self` by the result of `try_name`. Returns `None` if the
    /// function `try_name` does not have the attribute `#[in_place]`, and an error if the attribute has a wrong form.
    fn in_place(&self) -> Option<Result<Function>> {
        let form = match in_place_form(self.attributes.iter().find(|attribute| is_in_place(attribute))?) {
            Ok(form) => form,
            Err(error) => return Some(Err(error)),
        };
        let Function { visibility, name, generics, arguments, where_clause, .. } = self;
        let plain = plain_name(name)?;
        let in_place = format!("{plain}_");
        let parameters = arguments.iter().map(Argument::without_mut);
        let bounds = where_clause.iter().flat_map(|clause| &clause.predicates);
        let method = format_ident!("try_{in_place}", span = name.span());
        let arrays = self.arguments_of_type("implArrayOperand<Self>");
        let errors = self.in_place_errors(&form);
        let body = self.in_place_body(form);
        let doc = format!(" [`{plain}`](Self::{plain}) in place: `self` becomes the result.");
        let written = quote! {
            #[doc = #doc]
            ///
            /// # Errors
            ///
            #[doc = #errors]
            #visibility fn #method #generics (&mut self, #(#parameters),*) -> Result<(), Self::Error>
            where
                Self: crate::ops::InPlace,
                #(#bounds),*
            {
                let at = crate::Site::here(#in_place);
                #(let #arrays = &#arrays.into_array(self)?;)*
                #body
            }
        };
        Some(parse2(written))
    }

    /// Returns the text of the section `# Errors` for the method that [`in_place`](Self::in_place) writes.
    fn in_place_errors(&self, form: &InPlaceForm) -> String {
        let read: Vec<&Ident> = match form {
            InPlaceForm::Broadcast => {
                let arrays = ["implOperand<Self>", "Option<Argument<Self>>", "implArrayOperand<Self>"];
                let is_array = |argument: &&Argument| arrays.contains(&text_without_spaces(&argument.ty).as_str());
                self.arguments.iter().filter(is_array).map(|argument| &argument.name).collect()
            }
            InPlaceForm::Binary(_) => names(&self.arguments).collect(),
            InPlaceForm::Reads(sources) | InPlaceForm::Writes { sources, .. } => sources.iter().collect(),
        };
        let name = &self.name;
        let mut causes = vec![format!("[`{name}`](Self::{name}) returns an error")];
        if !matches!(form, InPlaceForm::Writes { .. }) {
            causes.push("the result does not have the shape of `self`".to_owned());
        }
        causes.push("several elements of `self` share one position in memory".to_owned());
        if !read.is_empty() {
            let names: Vec<String> = read.iter().map(|name| format!("`{name}`")).collect();
            causes.push(format!("{} partly overlaps `self` in memory", names.join(" or ")));
        }
        format!(" {}", sentence(&causes))
    }

    /// Returns the body of the method that [`in_place`](Self::in_place) writes. In the body, `at` is the caller's line of code.
    fn in_place_body(&self, form: InPlaceForm) -> TokenStream {
        let Function { name, generics, arguments, output, .. } = self;
        let (values, types) = (names(arguments), turbofish(generics));
        let value = quote!(let value = self.#name #types (#(#values),*)?;);
        match form {
            InPlaceForm::Broadcast => {
                let put = if text_without_spaces(output).starts_with("->Result<Self::Mask") {
                    quote!(put_mask)
                } else {
                    quote!(put)
                };
                let [operands, bounds, arrays] =
                    ["implOperand<Self>", "Option<Argument<Self>>", "implArrayOperand<Self>"]
                        .map(|ty| self.arguments_of_type(ty));
                quote! {
                    #(let #operands = crate::ops::Converted::new(#operands, self)?;)*
                    let others = [
                        #(Some(#arrays),)*
                        #(#operands.array(),)*
                        #(#bounds.as_ref().and_then(crate::ops::array),)*
                    ];
                    crate::ops::check_in_place(self, &others, at)?;
                    #value
                    self.#put(value, at)
                }
            }
            InPlaceForm::Binary(op) => {
                let other = names(arguments);
                quote!(self.update(#op, #(#other),*, at))
            }
            InPlaceForm::Reads(sources) => quote! {
                self.check_write(None, at)?;
                #(self.check_write(Some(#sources), at)?;)*
                #value
                crate::ops::put_same_shape(self, value, at)
            },
            InPlaceForm::Writes { function, sources } => {
                let values = names(arguments);
                quote! {
                    self.check_write(None, at)?;
                    #(self.check_write(Some(#sources), at)?;)*
                    #function(self, #(#values,)* at)
                }
            }
        }
    }

    /// Returns the names of the arguments whose type, written without spaces, is the text `ty`.
    fn arguments_of_type(&self, ty: &str) -> Vec<&Ident> {
        self.arguments
            .iter()
            .filter(|argument| text_without_spaces(&argument.ty) == ty)
            .map(|argument| &argument.name)
            .collect()
    }

    /// Returns the function with its twin. With `#[keepdim]`, returns it twice: under its name, for `keepdim` = false, and with `_keepdim`
    /// after its name, for `keepdim` = true. A hidden third function with `_with` after its name has the body.
    ///
    /// The source omits the argument `keepdim: bool`, because error messages of the compiler quote the signature from the source. Users
    /// call the method without this argument.
    fn expand_twins(mut self) -> Result<TokenStream> {
        let Some(position) = self.attributes.iter().position(|attribute| attribute.path().is_ident("keepdim")) else {
            return match self.arguments.last() {
                Some(Argument { name, ty, .. }) if name == "keepdim" && text_without_spaces(ty) == "bool" => {
                    Err(Error::new(name.span(), "write `#[keepdim]` above the method instead of this argument"))
                }
                _ => self.with_twin(self_path()),
            };
        };
        self.attributes.remove(position);
        let arguments = &self.arguments;
        let Some(plain) = plain_name(&self.name) else { return self.with_twin(self_path()) };
        check_site(&self.body, &plain)?;
        let with_name = format_ident!("{}_with", self.name);
        let method = |name: Ident, attributes: Vec<Attribute>, keepdim: bool| {
            let (types, values) = (turbofish(&self.generics), names(arguments));
            let body = quote!(self.#with_name #types (#(#values,)* #keepdim));
            let arguments = arguments.to_vec();
            let body = Group::new(Delimiter::Brace, body).into();
            Function { name, attributes, arguments, body, ..self.clone() }.with_twin(self_path())
        };
        let without = method(self.name.clone(), self.attributes.clone(), false)?;
        let doc = format!(" Like [`{plain}`](Self::{plain}), but keeps the reduced dimensions with size 1.");
        let errors = format!(" As for [`{0}`](Self::{0}).", self.name);
        let docs = [doc.as_str(), "", " # Errors", "", errors.as_str()];
        let attributes = docs.iter().map(|doc| parse_quote!(#[doc = #doc])).collect();
        let with = method(format_ident!("{}_keepdim", self.name), attributes, true)?;
        let Function { visibility, generics, receiver, arguments, output, where_clause, body, .. } = &self;
        let keepdim = Ident::new("keepdim", Span::call_site());
        Ok(quote! {
            #without
            #with

            #[doc(hidden)]
            #[track_caller]
            #visibility fn #with_name #generics (#receiver, #(#arguments,)* #keepdim: bool) #output #where_clause #body
        })
    }

    /// Returns the twin, followed by this function. The methods that `#[in_place]` requests come first. `owner` is the path by which the
    /// twin calls a function without a receiver.
    fn with_twin(self, owner: Option<TokenStream>) -> Result<TokenStream> {
        let in_place = self.in_place();
        let Function { attributes, visibility, name, generics, receiver, arguments, output, where_clause, body } = self;
        let attributes = attributes.into_iter().filter(|attribute| !is_in_place(attribute));
        let plain = plain_name(&name).ok_or_else(|| Error::new(name.span(), "its name must begin with `try_`"))?;
        check_site(&body, &plain)?;
        let twin = format_ident!("{plain}", span = name.span());
        let (mut docs, others): (Vec<_>, Vec<_>) = attributes.partition(|attribute| attribute.path().is_ident("doc"));
        let (panics, errors) = split_errors(&mut docs, &arguments, receiver.is_some());
        let result = ok_type(&output)?;
        let (passed, values) = (arguments.iter().map(Argument::without_mut), names(&arguments));
        let comma = receiver.as_ref().map(|_| quote!(,));
        let place = if receiver.is_some() { Some(quote!(self.)) } else { owner };
        let types = turbofish(&generics);
        let link = match &place {
            Some(_) => format!("[`{plain}`](Self::{plain}), with the error as a value."),
            None => format!("[`{plain}`], with the error as a value."),
        };
        let in_place = match in_place {
            Some(function) => Some(function?.with_twin(self_path())?),
            None => None,
        };
        Ok(quote! {
            #in_place

            #(#docs)*
            #panics
            #(#others)*
            #[track_caller]
            #visibility fn #twin #generics (#receiver #comma #(#passed),*) -> #result #where_clause {
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
            #visibility fn #name #generics (#receiver #comma #(#arguments),*) #output #where_clause #body
        })
    }
}

/// Removes the section `# Errors` at the end of the docs. Returns its text for the docs of the twin, with the heading `# Panics`, and for
/// the docs of the function itself. Without this section, the text follows from the types of the arguments.
fn split_errors(docs: &mut Vec<Attribute>, arguments: &[Argument], is_method: bool) -> (TokenStream, TokenStream) {
    let heading = docs.iter().position(|doc| doc.to_token_stream().to_string().contains("# Errors"));
    if let Some(section) = heading.map(|heading| docs.split_off(heading)) {
        let text = &section[1..];
        return (quote!(#[doc = " # Panics"] #(#text)*), quote!(#(#text)*));
    }
    let text = format!(" {}", usual_errors(arguments, is_method));
    (quote!(#[doc = ""] #[doc = " # Panics"] #[doc = ""] #[doc = #text]), quote!(#[doc = ""] #[doc = #text]))
}

/// Returns the sentence about the errors that every function with arguments of these types may return. If the function is not a method, its
/// sizes are the shape of a new array, and only negative sizes are an error.
fn usual_errors(arguments: &[Argument], is_method: bool) -> String {
    let mut causes: Vec<String> = Vec::new();
    for Argument { name, ty, .. } in arguments {
        let cause = match text_without_spaces(ty).as_str() {
            "implPosition" | "implInto<Span>" | "Option<isize>" => format!("`{name}` is out of range"),
            "implInto<Sizes>" if !is_method => "a size is negative".to_owned(),
            "implInto<Dims>" | "implInto<Sizes>" | "&[usize]" | "[usize;N]" | "&[isize]" => {
                format!("`{name}` does not fit the shape")
            }
            "&Self"
            | "&[Self]"
            | "&A"
            | "&[A]"
            | "Option<&Self>"
            | "Option<Argument<Self>>"
            | "implOperand<Self>"
            | "implOperand<X::Array>"
            | "implArrayOperand<Self>"
            | "implMaskOperand<Self>"
            | "implOptionalOperand<Self>"
            | "AttentionMask<'_,Self>"
            | "CellWeights<'_,Self>"
            | "&Tensor<bool>" => "the shapes of the operands do not fit together".to_owned(),
            "&Tensor<i64>" | "Classes<'_,Self>" => format!("`{name}` has a wrong shape or an element out of range"),
            "&[IndexItem]" => format!("`{name}` has an index out of range or too many indices"),
            other if other.contains("Options") => format!("`{name}` has a value that the operation refuses"),
            _ => continue,
        };
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    causes.push("memory cannot hold the result".to_owned());
    sentence(&causes)
}

/// Returns the sentence "If …, …, or ….", which lists `causes`.
fn sentence(causes: &[String]) -> String {
    match causes {
        [one] => format!("If {one}."),
        [first, second] => format!("If {first}, or {second}."),
        [others @ .., last] => format!("If {}, or {last}.", others.join(", ")),
        [] => unreachable!("there is a cause"),
    }
}

/// Returns true if the attribute is `#[in_place]`.
fn is_in_place(attribute: &Attribute) -> bool {
    attribute.path().is_ident("in_place")
}

/// The form of the attribute `#[in_place]`, which determines how `try_name_` works.
enum InPlaceForm {
    /// `#[in_place]`: the other operands must expand to the shape of `self`.
    Broadcast,
    /// `#[in_place(Binary::Add)]`: the result is the operation that the attribute names, applied to `self` and the only other operand.
    Binary(TokenStream),
    /// `#[in_place(reads(source))]`: the operands that the attribute names must not partly overlap `self` in memory. The result must have
    /// the shape of `self`.
    Reads(Vec<Ident>),
    /// `#[in_place(by(function), reads(source))]`: like `reads(source)`, but `function` writes the result to `self`.
    Writes { function: Ident, sources: Vec<Ident> },
}

/// Returns the form of an attribute `#[in_place]`, or an error for other contents.
fn in_place_form(attribute: &Attribute) -> Result<InPlaceForm> {
    let Meta::List(list) = &attribute.meta else { return Ok(InPlaceForm::Broadcast) };
    let form = |input: ParseStream| {
        if !input.peek2(syn::token::Paren) {
            return Ok(InPlaceForm::Binary(input.parse::<syn::Path>()?.into_token_stream()));
        }
        let (name, mut names) = names_in_parentheses(input)?;
        if name == "reads" {
            return Ok(InPlaceForm::Reads(names));
        }
        if name != "by" || names.len() != 1 {
            return Err(Error::new(
                name.span(),
                "this is neither `reads(…)` nor `by(function)` nor a binary operation",
            ));
        }
        input.parse::<Token![,]>()?;
        let (name, sources) = names_in_parentheses(input)?;
        if name != "reads" {
            return Err(Error::new(name.span(), "`by(function)` must be followed by `reads(…)`"));
        }
        Ok(InPlaceForm::Writes { function: names.remove(0), sources })
    };
    form.parse2(list.tokens.clone())
}

/// Parses `name(first, second, …)`. Returns the name and the list of names in parentheses.
fn names_in_parentheses(input: ParseStream) -> Result<(Ident, Vec<Ident>)> {
    let name = input.parse()?;
    let inside;
    parenthesized!(inside in input);
    Ok((name, Punctuated::<Ident, Token![,]>::parse_terminated(&inside)?.into_iter().collect()))
}

/// Returns the tokens as text without spaces, for comparisons.
fn text_without_spaces(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string().replace(' ', "")
}

/// Returns the path `Self::`, by which the twin of an associated function calls the function.
fn self_path() -> Option<TokenStream> {
    Some(quote!(Self::))
}

/// Returns the names of the arguments.
fn names(arguments: &[Argument]) -> impl Iterator<Item = &Ident> {
    arguments.iter().map(|argument| &argument.name)
}

/// Returns `::<A, B>`, the type and constant arguments for a call of the function. The compiler may not be able to infer them.
fn turbofish(generics: &Generics) -> Option<TokenStream> {
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

/// Returns the type `T` of the output `-> Result<T, E>`, or an error for another output.
fn ok_type(output: &ReturnType) -> Result<&Type> {
    if let ReturnType::Type(_, ty) = output
        && let Type::Path(path) = &**ty
        && let Some(last) = path.path.segments.last()
        && last.ident == "Result"
        && let PathArguments::AngleBracketed(arguments) = &last.arguments
        && let Some(GenericArgument::Type(success)) = arguments.args.first()
    {
        return Ok(success);
    }
    Err(Error::new_spanned(output, "a function that has a twin returns a `Result`"))
}

/// Returns the name without its prefix `try_`, or `None` if it does not begin with `try_`.
fn plain_name(name: &Ident) -> Option<String> {
    name.to_string().strip_prefix("try_").map(str::to_owned)
}

/// Returns an error if the name in a `Site::here("name")` is not `plain`, the name of the twin that panics.
fn check_site(body: &TokenTree, plain: &str) -> Result<()> {
    let TokenTree::Group(group) = body else { return Ok(()) };
    let mut after_here = false;
    for token in group.stream() {
        match &token {
            TokenTree::Group(inside) if after_here => {
                let literal = inside.stream().to_string();
                let named = literal.trim_matches('"');
                // The operation `where` has the method `where_`, because `where` is a Rust keyword.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the documentation that `#[twins]` writes for the function `name`, as one line.
    fn docs_of(name: &str, function: TokenStream) -> String {
        let written = parse2::<Function>(function).unwrap().with_twin(self_path()).unwrap().to_string();
        let end = written.find(&format!("fn {name} ")).unwrap();
        let start = written[..end].rfind('}').map_or(0, |end| end + 1);
        let quoted = written[start..end].split('"').skip(1).step_by(2);
        quoted.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_wrong_form_of_in_place_is_an_error() {
        let error = |form: TokenStream| {
            let function = quote! {
                #[in_place(#form)]
                fn try_add(&self, other: impl Operand<Self>) -> Result<Self> { Ok(1) }
            };
            parse2::<Function>(function).unwrap().with_twin(self_path()).map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(error(quote!(Binary::Add)), Ok(()));
        assert_eq!(error(quote!(reads(other))), Ok(()));
        assert_eq!(error(quote!(by(add), reads(other))), Ok(()));
        let message = "this is neither `reads(…)` nor `by(function)` nor a binary operation";
        for form in [quote!(read(other)), quote!(by(add, other), reads(other))] {
            assert_eq!(error(form), Err(message.to_owned()));
        }
        assert_eq!(
            error(quote!(by(add), read(other))),
            Err("`by(function)` must be followed by `reads(…)`".to_owned())
        );
        assert!(error(quote!(by(add))).is_err());
        assert!(error(quote!(reads(other) other)).is_err() && error(quote!(Binary::Add, other)).is_err());
        assert!(error(quote!(1 + 1)).is_err() && error(quote!(reads(1))).is_err());
    }

    #[test]
    fn blanket_implements_a_trait_for_all_types_with_its_supertraits() {
        let expanded = |arguments: TokenStream, item: TokenStream| {
            expand(arguments, item).map(|tokens| text_without_spaces(&tokens)).map_err(|error| error.to_string())
        };
        let functions = quote! {
            /// Functions.
            pub trait Functions: TensorLike<Elem: Float> {}
        };
        let implementation = "impl<A:TensorLike<Elem:Float>>FunctionsforA{}";
        assert!(expanded(quote!(blanket), functions.clone()).unwrap().ends_with(&format!("{{}}{implementation}")));
        assert!(!expanded(quote!(), functions.clone()).unwrap().contains("impl"));
        assert_eq!(expanded(quote!(other), functions), Err("the only argument of `#[twins]` is `blanket`".to_owned()));
        for item in [
            quote!(impl Tensor {}),
            quote!(
                trait Functions<T>: Clone {}
            ),
            quote!(
                trait Functions {}
            ),
        ] {
            assert_eq!(
                expanded(quote!(blanket), item),
                Err("#[twins(blanket)] is for traits with supertraits and without generics".to_owned())
            );
        }
    }

    #[test]
    fn both_functions_say_what_fails() {
        let gather = quote! {
            /// Gathers.
            fn try_gather(&self, dim: impl Position, other: impl Operand<Self>, y: &Self) -> Result<Self> { Ok(1) }
        };
        let causes = "If `dim` is out of range, the shapes of the operands do not fit together, or memory cannot hold the result.";
        assert_eq!(docs_of("gather", gather.clone()), format!("Gathers. # Panics {causes}"));
        assert!(docs_of("try_gather", gather).ends_with(&format!("# Errors {causes}")));
        let relu = quote! {
            #[in_place]
            fn try_relu(&self) -> Result<Self> { Ok(1) }
        };
        assert_eq!(docs_of("relu", relu.clone()), "# Panics If memory cannot hold the result.");
        assert!(
            docs_of("relu_", relu).contains("# Panics If [`try_relu`](Self::try_relu) returns an error, the result")
        );
        let scatter = quote! {
            #[in_place(reads(source))]
            fn try_scatter(&self, index: &Tensor<i64>, source: impl ArrayOperand<Self>) -> Result<Self> { Ok(1) }
        };
        assert_eq!(
            docs_of("scatter", scatter.clone()),
            "# Panics If `index` has a wrong shape or an element out of range, the shapes of the operands do not fit together, or \
             memory cannot hold the result."
        );
        for (function, method, overlap) in [
            (scatter, "try_scatter_", Some("`source` partly overlaps")),
            (
                quote! { #[in_place(Binary::Add)] fn try_add(&self, other: impl Operand<Self>) -> Result<Self> { Ok(1) } },
                "try_add_",
                Some("`other` partly overlaps"),
            ),
            (
                quote! { #[in_place] fn try_fma(&self, x: impl Operand<Self>, y: impl ArrayOperand<Self>) -> Result<Self> { Ok(1) } },
                "try_fma_",
                Some("`x` or `y` partly overlaps"),
            ),
            (quote! { #[in_place(reads())] fn try_addr(&self, x: &Self) -> Result<Self> { Ok(1) } }, "try_addr_", None),
        ] {
            let docs = docs_of(method, function);
            match overlap {
                Some(overlap) => {
                    assert!(
                        docs.ends_with(&format!("share one position in memory, or {overlap} `self` in memory.")),
                        "{docs}"
                    );
                }
                None => {
                    assert!(docs.ends_with("or several elements of `self` share one position in memory."), "{docs}")
                }
            }
        }
        let pool = quote! {
            fn try_pool(&self, mask: &Tensor<bool>, options: &PoolOptions) -> Result<Self> { Ok(1) }
        };
        assert_eq!(
            docs_of("pool", pool),
            "# Panics If the shapes of the operands do not fit together, `options` has a value that the operation refuses, or memory \
             cannot hold the result."
        );
        let sort = quote! {
            /// Sorts.
            ///
            /// # Errors
            ///
            /// If there is nothing to sort.
            fn try_sort(&self) -> Result<Self> { Ok(1) }
        };
        assert_eq!(docs_of("sort", sort), "Sorts. # Panics If there is nothing to sort.");
        let zeros = quote! {
            pub fn try_zeros(shape: impl Into<Sizes>) -> Result<Self, Error> { Ok(1) }
        };
        assert_eq!(docs_of("zeros", zeros), "# Panics If a size is negative, or memory cannot hold the result.");
    }
}
