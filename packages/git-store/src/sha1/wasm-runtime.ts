/** A module of {@link encodeModule} that is ready to run. */
export interface WasmInstance {
  readonly memory: ArrayBuffer;
  readonly run: (parameter: number) => number;
}

/** The part of WebAssembly's JavaScript interface that is used here. Node's types do not have it. */
interface WebAssemblyInterface {
  readonly validate: (bytes: Uint8Array) => boolean;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => {
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      readonly run: (parameter: number) => number;
    };
  };
}

/** Compiles a module. @returns undefined where the engine or the processor does not support its instructions */
export function compileModule(bytes: Uint8Array): (() => WasmInstance) | undefined {
  const engine = (globalThis as { readonly WebAssembly?: WebAssemblyInterface }).WebAssembly;
  if (engine?.validate(bytes) !== true) return undefined;
  const module = new engine.Module(bytes);
  return () => {
    const { memory, run } = new engine.Instance(module).exports;
    return { memory: memory.buffer, run };
  };
}
