//! The parts of functions, traits and `impl` blocks that the attributes read.
//!
//! Only signatures are parsed. Bodies and the other members of a trait or an `impl` block are copied unchanged. So
//! `syn` does not need its features for whole files.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Error, Generics, Lifetime, Result, ReturnType, Token, Type, Visibility, WhereClause, parenthesized,
};

/// A function: the parts of its signature, and its body.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) output: ReturnType,
    pub(crate) where_clause: Option<WhereClause>,
    /// The braces with the body, or the semicolon of a method without a body.
    pub(crate) body: TokenTree,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let attributes = Attribute::parse_outer(input)?;
        let visibility = input.parse()?;
        input.parse::<Token![fn]>()?;
        let (name, generics) = (input.call(Ident::parse_any)?, input.parse()?);
        let inside;
        parenthesized!(inside in input);
        let receiver = Receiver::parse(&inside)?;
        let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&inside)?.into_iter().collect();
        let (output, where_clause, body) = (input.parse()?, input.parse()?, input.parse()?);
        Ok(Function { attributes, visibility, name, generics, receiver, arguments, output, where_clause, body })
    }
}

/// A receiver, such as `self`, `&self`, `&'a self` or `&mut self`.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) ampersand: Option<Token![&]>,
    pub(crate) lifetime: Option<Lifetime>,
    pub(crate) mutable: Option<Token![mut]>,
    this: Token![self],
}

impl Receiver {
    /// Parses a receiver, with the comma after it. Returns `None` if there is no receiver.
    fn parse(input: ParseStream) -> Result<Option<Self>> {
        let receiver = |input: ParseStream| -> Result<Self> {
            let ampersand = input.parse::<Option<Token![&]>>()?;
            let lifetime = if ampersand.is_some() { input.parse()? } else { None };
            Ok(Receiver { ampersand, lifetime, mutable: input.parse()?, this: input.parse()? })
        };
        if receiver(&input.fork()).is_err() {
            return Ok(None);
        }
        let receiver = receiver(input)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Some(receiver))
    }
}

impl ToTokens for Receiver {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Receiver { ampersand, lifetime, mutable, this } = self;
        tokens.extend(quote!(#ampersand #lifetime #mutable #this));
    }
}

/// An argument besides the receiver. Its pattern is a plain name.
#[derive(Clone)]
pub(crate) struct Argument {
    pub(crate) mutable: Option<Token![mut]>,
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> Result<Self> {
        let (mutable, name) = (input.parse()?, input.parse()?);
        input.parse::<Token![:]>()?;
        Ok(Argument { mutable, name, ty: input.parse()? })
    }
}

impl Argument {
    /// Returns `name: Type`, without `mut`, for the signature of a function that only passes the argument on.
    pub(crate) fn without_mut(&self) -> TokenStream {
        let Argument { name, ty, .. } = self;
        quote!(#name: #ty)
    }
}

impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.mutable.to_tokens(tokens);
        tokens.extend(self.without_mut());
    }
}

/// A trait or an `impl` block: the tokens before its braces, and the braces with its members.
pub(crate) struct Item {
    pub(crate) header: TokenStream,
    body: Group,
}

impl Item {
    /// Splits a trait or an `impl` block. For an item that does not end with braces, returns an error with the text
    /// `refusal`.
    pub(crate) fn split(item: TokenStream, refusal: &str) -> Result<Self> {
        let mut tokens: Vec<TokenTree> = item.into_iter().collect();
        match tokens.pop() {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
                Ok(Item { header: tokens.into_iter().collect(), body })
            }
            _ => Err(Error::new(Span::call_site(), refusal)),
        }
    }

    /// Returns the members of the block.
    pub(crate) fn members(&self) -> Result<Vec<Member>> {
        let members = |input: ParseStream| {
            let mut members = Vec::new();
            while !input.is_empty() {
                members.push(input.parse()?);
            }
            Ok(members)
        };
        members.parse2(self.body.stream())
    }

    /// Returns the block with `members` in place of its members.
    pub(crate) fn with_members(self, members: TokenStream) -> TokenStream {
        let (header, body) = (self.header, with_content(&self.body, members));
        quote!(#header #body)
    }
}

/// A member of a trait or an `impl` block. For a function, `function` is its name.
pub(crate) struct Member {
    pub(crate) function: Option<Ident>,
    pub(crate) tokens: TokenStream,
}

impl Parse for Member {
    fn parse(input: ParseStream) -> Result<Self> {
        let lookahead = input.fork();
        Attribute::parse_outer(&lookahead)?;
        lookahead.parse::<Visibility>()?;
        let function = match lookahead.parse::<Option<Token![fn]>>()? {
            Some(_) => Some(lookahead.call(Ident::parse_any)?),
            None => None,
        };
        // A member ends with a semicolon, or with the braces of a function's body.
        let mut tokens = TokenStream::new();
        loop {
            let token: TokenTree = input.parse()?;
            let ends = match &token {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !input.peek(Token![;]),
                _ => false,
            };
            tokens.extend([token]);
            if ends {
                return Ok(Member { function, tokens });
            }
        }
    }
}

/// Returns a group with the delimiter and the span of `group` and the content `inside`.
pub(crate) fn with_content(group: &Group, inside: TokenStream) -> Group {
    let mut replaced = Group::new(group.delimiter(), inside);
    replaced.set_span(group.span());
    replaced
}

/// Returns true if the tokens contain the identifier `name`, at any depth.
pub(crate) fn has_ident(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => has_ident(group.stream(), name),
        _ => false,
    })
}
