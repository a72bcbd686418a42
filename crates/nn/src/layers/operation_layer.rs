//! Macros that define a layer from an operation on variables.

/// Defines layers without settings. Each row of the macro's input has a doc comment, the layer's name, and the operation that the layer applies.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl<T: Float> Module<T> for $name {}

        impl<T: Float> Layer<T> for $name {
            #[track_caller]
            fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
                Ok(pass_output(self, x.$operation()?))
            }
        }
    )*};
}

/// Defines layers whose settings are the arguments of their operation. Each row of the macro's input has a doc comment, the layer's name,
/// its settings with their types, and the operation. PyTorch's default settings follow, if PyTorch has defaults.
macro_rules! functions_with_settings {
    ($($(#[$doc:meta])* $name:ident { $($(#[$setting_doc:meta])* $setting:ident: $type:ty),* } = $operation:ident
        $(, default($($default:expr),*))?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $($(#[$setting_doc])* $setting: $type,)*
            created_at: &'static Location<'static>,
        }

        impl $name {
            /// Returns a layer with the given settings.
            #[track_caller]
            pub fn new($($setting: $type),*) -> Self {
                $name { $($setting,)* created_at: Location::caller() }
            }
        }

        $(impl Default for $name {
            /// Returns the layer with PyTorch's default settings.
            #[track_caller]
            fn default() -> Self {
                $name::new($($default),*)
            }
        })?

        impl<T: Float> Module<T> for $name {}

        impl<T: Float> Layer<T> for $name {
            #[track_caller]
            fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
                output_of(self, x.$operation($(self.$setting),*), self.created_at, || {
                    let settings = [$(format!(concat!(stringify!($setting), "={}"), self.$setting)),*].join(", ");
                    format!("{}({settings}) on an input of shape {}", stringify!($name), x.shape())
                })
            }
        }
    )*};
}

pub(crate) use functions;

pub(crate) use functions_with_settings;
