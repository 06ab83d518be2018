//! Secrets that must not leave the process, and their mask.
//!
//! ```
//! use toolwarden_secrets::{mask_secrets, register_secrets};
//!
//! register_secrets(["correct-horse"]);
//! assert_eq!(mask_secrets("refused: correct-horse"), "refused: ***");
//! ```

mod secret_mask;

pub use secret_mask::{
    Secrets, is_secret_name, mask_secrets, register_secrets, secret_arguments, secret_url_parts,
};
