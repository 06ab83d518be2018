use toolwarden_model::json::Object;

/// The keys of a definition that indicate its format, found in one pass over the object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys(u64);

macro_rules! keys {
    ($($key:ident = $($spelling:literal)|+,)+) => {
        /// A key that indicates a format.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Key { $($key,)+ }

        fn key(spelling: &str) -> Option<Key> {
            match spelling {
                $($($spelling)|+ => Some(Key::$key),)+
                _ => None,
            }
        }
    };
}

keys! {
    Args = "args",
    ArgsSchema = "args_schema",
    CachePoint = "cachePoint",
    Capabilities = "capabilities",
    FnSchema = "fn_schema",
    Function = "function",
    FunctionDeclarations = "functionDeclarations" | "function_declarations",
    Functions = "functions",
    GeminiJsonSchema = "parametersJsonSchema" | "responseJsonSchema" | "parameters_json_schema" | "response_json_schema",
    InputSchemaCamel = "inputSchema",
    InputSchemaSnake = "input_schema",
    Inputs = "inputs",
    IsPrompt = "is_prompt",
    JsonRpc = "jsonrpc",
    Lc = "lc",
    Messages = "messages",
    Name = "name",
    Openapi = "openapi" | "swagger",
    OperationId = "operationId",
    OutputType = "output_type",
    ParameterDefinitions = "parameter_definitions",
    Parameters = "parameters",
    ParamsJsonSchema = "params_json_schema",
    PluginName = "plugin_name",
    Properties = "properties",
    Responses = "responses",
    Result = "result",
    Schema = "schema",
    Skills = "skills",
    Strict = "strict",
    SystemTool = "systemTool",
    Tags = "tags",
    Title = "title",
    Tool = "tool",
    ToolConfig = "toolConfig",
    ToolSpec = "toolSpec",
    Tools = "tools",
    Type = "type",
    XCapabilities = "x-capabilities",
}

impl Keys {
    pub(crate) fn of(members: &Object) -> Self {
        let telling = members.keys().filter_map(|spelling| key(spelling));
        telling.fold(Self::default(), Self::with)
    }

    pub(crate) const fn with(self, key: Key) -> Self {
        Self(self.0 | 1 << key as u64)
    }

    pub(crate) const fn has(self, key: Key) -> bool {
        self.0 & (1 << key as u64) != 0
    }
}
