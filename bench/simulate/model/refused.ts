/** The job was refused, by the service or by the code host. */
export class Refused extends Error {
  constructor(by: string) {
    super(`refused by ${by}`);
    this.name = "Refused";
  }
}
