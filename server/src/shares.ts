/** How much of something each of its holders has at the moment. Who has nothing is forgotten. */
export class Shares {
  readonly #byHolder = new Map<string, number>();

  of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }

  take(holder: string, amount = 1): void {
    this.#byHolder.set(holder, this.of(holder) + amount);
  }

  giveBack(holder: string, amount = 1): void {
    const left = this.of(holder) - amount;
    if (left > 0) this.#byHolder.set(holder, left);
    else this.#byHolder.delete(holder);
  }
}
