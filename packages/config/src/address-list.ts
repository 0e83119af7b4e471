import { BlockList, isIP, isIPv4 } from "node:net";

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** A list of addresses and networks (`10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`). */
export class AddressList {
  readonly #list = new BlockList();

  /** @param entries addresses and networks, each checked by {@link addressFault} */
  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address = "", bits] = entry.split("/");
      const family = isIPv4(address) ? "ipv4" : "ipv6";
      if (bits === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(bits), family);
    }
  }

  /** Whether the list has the address. IPv4 addresses from an IPv6 socket (`::ffff:10.0.0.1`) count as IPv4. */
  has(address: string): boolean {
    const plain = MAPPED_IPV4.exec(address)?.[1] ?? address;
    if (isIP(plain) === 0) return false;
    return this.#list.check(plain, isIPv4(plain) ? "ipv4" : "ipv6");
  }
}

/** The fault of an entry, or undefined. */
export function addressFault(entry: string): string | undefined {
  const [address = "", bits, ...rest] = entry.split("/");
  const version = isIP(address);
  const fits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  if (version === 0 || !fits || rest.length > 0) return "expected an address or a network such as 10.0.0.0/8";
  return undefined;
}
