// What the server measured of all heads.
import type { Role, Token } from "../../core/report";

export interface Measured { mean: number; n: number; texts: number; interval95?: [number, number]; chance?: number }
// Of relations: the share of the word's attention that goes there, and what patching the head brings back from there.
export interface Cause { restored: Measured; other_heads: Measured; usable_pairs: number }
export interface FoundRole extends Omit<Role, "coverage"> { coverage: Measured; chance?: number; texts?: number; mass?: Measured; cause?: Cause | null }
export interface FoundHead { name: string; stack: string; layer: number; head: number; roles: FoundRole[]; measures: Record<string, Measured> }
export interface Found { state: "measuring" | "ready" | "failed"; done?: number; of?: number; error?: string; heads?: FoundHead[]; texts?: number; tokens?: number; data?: string; labels?: "measuring" | "ready" }

export interface Example { decile: number; row: number; key: number; strength: number; weights: number[]; tokens: Token[]; source?: Token[] }
export interface Examples { head: string; rows: number; texts: number; deciles: number[]; examples: Example[] }

export interface Pair { a: string; b: string; distance: number; cka: number; synergy: number; low: number; high: number; duplicate: boolean }
export interface TwinsFound { state: "measuring" | "ready" | "failed"; done?: number; error?: string; compared?: number; alike?: number; closest?: Pair[]; clusters?: string[][] }
